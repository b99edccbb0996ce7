// SPDX-License-Identifier: BSD-3-Clause
// One naive, readable loop nest an operation: the truth that every fast form is tested against.
// Header-only templates, so that a test may instantiate them in long double.
#pragma once

#include "kernels/leaf_args.hpp"
