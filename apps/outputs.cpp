// SPDX-License-Identifier: BSD-3-Clause
#include "apps/outputs.hpp"

#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "blockvec/error.hpp"
#include "kernels/hdf5_file.hpp"
#include "kernels/output_file.hpp"

namespace quiver::apps {

void check_outputs(std::initializer_list<const Output*> outputs, const std::vector<Input>& inputs) {
    std::vector<const Output*> checked;
    for (const Output* output : outputs) {
        if (!output->given) {
            continue;
        }
        if (output->format == hdf5_format) {
            require_hdf5();
        }
        check_writable(output->path, output->option, output->format);
        for (const Input& input : inputs) {
            require_not_the_matrix(output->option, output->path, input.path, input.what);
        }
        for (const Output* other : checked) {
            if (same_output(other->path, output->path)) {
                throw InputError(other->option + " and " + output->option +
                                 " name the same file, " + other->path);
            }
        }
        checked.push_back(output);
    }
}

}  // namespace quiver::apps
