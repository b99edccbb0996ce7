// SPDX-License-Identifier: BSD-3-Clause
// Building blocks of the HDF5 files: handles, a file that is renamed when it is complete, and a
// dataset whose values are checked when read. Private to kernels/.
#pragma once

#include <algorithm>
#include <cerrno>
#include <climits>
#include <complex>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <hdf5.h>
#include <sys/mman.h>
#include <unistd.h>

#include "blockvec/error.hpp"
#include "blockvec/scalar.hpp"
#include "kernels/output_file.hpp"

namespace quiver::hdf5 {

constexpr std::size_t chunk_bytes = std::size_t{8} << 20;

/// The number of rows that fill a chunk, at least one.
template <class T>
std::int64_t rows_in_chunk(std::int64_t cols) {
    const std::size_t row_bytes = static_cast<std::size_t>(cols) * sizeof(T);
    return static_cast<std::int64_t>(std::max<std::size_t>(1, chunk_bytes / (row_bytes + 1)));
}

/// Suppresses the error output of HDF5 in a scope; restores the caller's setting at the end.
class QuietErrors {
  public:
    QuietErrors() {
        H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    }
    QuietErrors(const QuietErrors&) = delete;
    QuietErrors& operator=(const QuietErrors&) = delete;
    ~QuietErrors() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

  private:
    H5E_auto2_t print_ = nullptr;
    void* data_ = nullptr;
};

/// The system's error message if there is one, else the innermost message of HDF5.
inline std::string reason() {
    std::string text;
    const auto take = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
        auto& innermost = *static_cast<std::string*>(out);
        if (innermost.empty() && error->desc != nullptr) {
            innermost = error->desc;
        }
        return 0;
    };
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &text);
    const std::string mark = "error message = '";
    const std::size_t begin = text.find(mark);
    if (begin == std::string::npos) {
        return text.empty() ? "HDF5 gives no reason" : text;
    }
    const std::size_t first = begin + mark.size();
    return text.substr(first, text.find('\'', first) - first);
}

/// Owns an HDF5 identifier.
class Handle {
  public:
    using Close = herr_t (*)(hid_t);
    Handle(hid_t id, Close close) : id_(id), close_(close) {}
    Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
    Handle& operator=(Handle&&) = delete;
    ~Handle() { close(); }

    hid_t get() const { return id_; }
    explicit operator bool() const { return id_ >= 0; }
    /// Returns false if closing fails.
    bool close() { return id_ < 0 || close_(std::exchange(id_, -1)) >= 0; }

  private:
    hid_t id_;
    Close close_;
};

/// The HDF5 type of T, the same in memory and in files.
template <class T>
Handle type_of() {
    if constexpr (is_complex_v<T>) {
        using R = real_t<T>;
        Handle type(H5Tcreate(H5T_COMPOUND, sizeof(T)), H5Tclose);
        const Handle part = type_of<R>();
        H5Tinsert(type.get(), "r", 0, part.get());
        H5Tinsert(type.get(), "i", sizeof(R), part.get());
        return type;
    } else {
        return {H5Tcopy(std::is_same_v<T, float> ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE), H5Tclose};
    }
}

inline Handle make_space(std::initializer_list<std::int64_t> sizes) {
    const std::vector<hsize_t> dims(sizes.begin(), sizes.end());
    return {H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose};
}

/// The dataspace with rows first .. first + rows - 1 of a dataset selected.
inline Handle select_rows(hid_t dataset, std::int64_t first, std::int64_t rows, std::int64_t cols) {
    Handle space(H5Dget_space(dataset), H5Sclose);
    const hsize_t start[] = {static_cast<hsize_t>(first), 0};
    const hsize_t count[] = {static_cast<hsize_t>(rows), static_cast<hsize_t>(cols)};
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr);
    return space;
}

/// An HDF5 file with a temporary name until it is complete; removed if it is never completed.
class PartFile {
  public:
    explicit PartFile(const std::string& path) : output_(path), file_(create(), H5Fclose) {
        void* descriptor = nullptr;
        if (H5Fget_vfd_handle(file_.get(), H5P_DEFAULT, &descriptor) >= 0) {
            descriptor_ = *static_cast<int*>(descriptor);
        }
    }
    PartFile(const PartFile&) = delete;
    PartFile& operator=(const PartFile&) = delete;
    ~PartFile() {
        abandon();
        file_.close();
    }

    hid_t get() const { return file_.get(); }

    /// Throws an Error with HDF5's reason unless `good`.
    void check(bool good) {
        if (!good) {
            refuse(reason());
        }
    }

    /// Allocates the disk space in advance if the file system supports it, so that a full disk is
    /// detected before any data are written.
    void reserve(std::int64_t bytes) {
        if (bytes > 0 && fallocate(descriptor_, 0, 0, bytes) != 0 &&
            (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)) {
            refuse(std::to_string(bytes) + " bytes do not fit: " + std::strerror(errno));
        }
    }

    /// Redirects all later writes of HDF5 to memory and discards them: HDF5 1.10 crashes at exit if
    /// a file could not be closed.
    void abandon() {
        const int sink = descriptor_ < 0 ? -1 : memfd_create("abandoned", MFD_CLOEXEC);
        if (sink >= 0) {
            dup2(sink, std::exchange(descriptor_, -1));
            close(sink);
        }
    }

    /// Closes and renames the file, after all its objects are closed. `durable`: synchronised to
    /// disk before the file is renamed.
    void finish(bool durable = false) {
        check(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL) >= 0);
        descriptor_ = -1;
        check(file_.close());
        output_.publish(durable);
    }

  private:
    hid_t create() {
        output_.require_regular_file("an HDF5 file");
        try_disk();
        const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
        H5Pset_fapl_sec2(access.get());
        const hid_t file =
            H5Fcreate(output_.part().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get());
        check(file >= 0);
        return file;
    }
    /// Writes a test page without HDF5, because HDF5 keeps traces of a file that it cannot create.
    void try_disk() const {
        const std::string page(4096, '\0');
        const int file = output_.open();
        const ssize_t count = write(file, page.data(), page.size());
        const bool written = count == std::ssize(page);
        // A write to a disk that fills up within the page is short, but sets no error.
        const std::string why = std::strerror(count >= 0 ? ENOSPC : errno);
        if (close(file) != 0 || !written) {
            throw Error(ErrorKind::other, "cannot write " + output_.name() + ": " + why);
        }
    }
    [[noreturn]] void refuse(const std::string& why) {
        abandon();
        throw Error(ErrorKind::other, "cannot write " + output_.name() + ": " + why);
    }

    OutputFile output_;
    int descriptor_ = -1;
    Handle file_;
};

/// An open dataset of rows x cols numbers; cols is 1 for a one-dimensional dataset.
class BlockFileReader {
  public:
    BlockFileReader(const std::string& path, const std::string& name)
        : what_(path + ": dataset " + name),
          file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose),
          data_(open(path, name)) {
        const Handle space(H5Dget_space(data_.get()), H5Sclose);
        const int dimensions = H5Sget_simple_extent_ndims(space.get());
        if (dimensions < 1 || dimensions > 2) {
            throw InputError(what_ + " has " + std::to_string(dimensions) +
                             " dimensions; a block has 1 or 2");
        }
        hsize_t dims[2] = {0, 1};
        H5Sget_simple_extent_dims(space.get(), dims, nullptr);
        if (dims[0] > static_cast<hsize_t>(INT64_MAX) || dims[1] > static_cast<hsize_t>(INT_MAX)) {
            throw InputError(what_ + " is " + std::to_string(dims[0]) + " x " +
                             std::to_string(dims[1]) + ": too large for a block");
        }
        rows_ = static_cast<std::int64_t>(dims[0]);
        cols_ = static_cast<int>(dims[1]);
        const Handle type(H5Dget_type(data_.get()), H5Tclose);
        const H5T_class_t kind = H5Tget_class(type.get());
        complex_ = kind == H5T_COMPOUND && H5Tget_member_index(type.get(), "r") >= 0 &&
                   H5Tget_member_index(type.get(), "i") >= 0;
        if (!complex_ && kind != H5T_FLOAT && kind != H5T_INTEGER) {
            throw InputError(what_ + " does not hold numbers");
        }
    }

    std::int64_t rows() const { return rows_; }
    int cols() const { return cols_; }
    bool is_complex() const { return complex_; }

    /// Reads rows, converts them to T and throws InputError unless all are finite.
    template <class T>
    void read_rows(std::int64_t first, std::int64_t rows, T* to) const {
        if constexpr (is_complex_v<T>) {
            if (!complex_) {
                std::vector<real_t<T>> parts(static_cast<std::size_t>(rows * cols_));
                read_rows(first, rows, parts.data());
                std::copy(parts.begin(), parts.end(), to);
                return;
            }
        } else if (complex_) {
            throw InputError(what_ + " is complex; read it into a complex scalar type");
        }
        const Handle type = type_of<T>();
        const Handle into = make_space({rows, cols_});
        const Handle from = select_rows(data_.get(), first, rows, cols_);
        if (H5Dread(data_.get(), type.get(), into.get(), from.get(), H5P_DEFAULT, to) < 0) {
            throw InputError(what_ + " cannot be read: " + reason());
        }
        const T* bad = std::find_if_not(to, to + rows * cols_, is_finite<T>);
        if (bad != to + rows * cols_) {
            const std::int64_t place = bad - to;
            throw InputError(what_ + ", row " + std::to_string(first + place / cols_) +
                             ", column " + std::to_string(place % cols_) +
                             " (counted from 0): not a finite number");
        }
    }

  private:
    Handle open(const std::string& path, const std::string& name) const {
        if (!file_) {
            throw InputError("cannot read " + path + ": " + reason());
        }
        Handle data(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
        if (!data) {
            throw InputError(path + ": has no dataset " + name);
        }
        return data;
    }

    std::string what_;
    Handle file_;
    Handle data_;
    std::int64_t rows_ = 0;
    int cols_ = 1;
    bool complex_ = false;
};

}  // namespace quiver::hdf5
