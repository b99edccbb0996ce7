// SPDX-License-Identifier: BSD-3-Clause
// A table of bad input: each row ends with its status and one line that names the cause, on one
// rank and on two, and leaves no file behind. `ctest -V -R cli_misuse` shows the table.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/config.hpp"
#include "tests/apps/run_command.hpp"
#include "tests/support/sanitizers.hpp"

namespace quiver::test {
namespace {

/// The largest row of B = diag(1, 1, -1e-3) keeps its size in the units of LOBPCG.
constexpr const char* indefinite_in_units =
    "LOBPCG: B is not positive definite: -0.004 is one of its Ritz values, its norm about 4 "
    "(in units that make the rows of A and B alike)";

struct Row {
    std::string name;
    /// A shell script whose last line calls quiver.
    std::string script;
    int status;
    /// The text that the line must contain.
    std::string text;
    /// The numbers of ranks on which the row runs.
    std::vector<int> ranks{1, 2};
};

/// Ends a command that hangs; the limit of ctest is 600 s.
constexpr int most_seconds = 500;
const std::string matrix = "gen:laplace1d,nx=10";

/// Files that are not matrices, or contradict their header.
std::vector<Row> file_rows(const Folder& folder) {
    const std::string real = "%%MatrixMarket matrix coordinate real ";
    std::vector<Row> rows;
    const auto add = [&](const char* name, const std::string& content, const std::string& text,
                         int status = 2) {
        const std::string file = "m" + std::to_string(rows.size()) + ".mtx";
        // A text that begins with a colon is a line number of the file.
        rows.push_back({name,
                        "quiver eigs " + folder.write(file, content) + " -k 1 --method lanczos",
                        status, (text.starts_with(':') ? file : "") + text});
    };
    add("empty file", "", ":1: the file is empty");
    add("no header", "1 1 1\n1 1 1\n", ":1: not a Matrix Market file");
    add("unknown field", "%%MatrixMarket matrix coordinate quaternion general\n1 1 1\n1 1 1\n",
        ":1: the field 'quaternion' is unknown; known are real, integer, complex");
    add("unknown symmetry", real + "odd\n1 1 1\n1 1 1\n",
        ":1: the symmetry 'odd' is unknown; known are general, symmetric");
    add("no size line", real + "general\n% nothing\n", "before the size line");
    add("negative size", real + "general\n-2 2 2\n1 1 1\n", ":2: the size line has a negative");
    add("size beyond 64 bits", real + "general\n99999999999999999999 2 1\n1 1 1\n",
        ":2: number of rows: '99999999999999999999' is too large");
    add("dense size beyond 64 bits",
        "%%MatrixMarket matrix array real general\n4000000000 4000000000\n1\n",
        ":2: the size overflows: 4000000000 x 4000000000");
    add("symmetric of 3 x 2", real + "symmetric\n3 2 1\n1 1 1\n",
        ":2: a symmetric matrix of 3 rows");
    add("not square", real + "general\n2 3 1\n1 2 1\n", "2 x 3 is not square");
    add("no rows", real + "general\n0 0 0\n", "the matrix has 0 rows");
    add("row index too large", real + "general\n2 2 2\n1 1 1\n3 1 1\n",
        ":4: row index 3 is outside 1 .. 2");
    add("column index too large", real + "general\n2 2 1\n1 7 1\n",
        ":3: column index 7 is outside 1 .. 2");
    add("index zero", real + "general\n2 2 2\n1 1 1\n0 1 1\n", ":4: row index 0 is outside 1 .. 2");
    add("index that is no number", real + "general\n2 2 1\n1 x 1\n", ":3: ");
    add("truncated in a number", real + "symmetric\n3 3 3\n1 1 2\n2 2 2\n3 3 1.5e",
        ":5: expected a number, found '1.5e'");
    add("too few entries", real + "general\n2 2 3\n1 1 1\n2 1 1\n",
        ":4: the file ends after 2 of 3 entries");
    add("too many entries", real + "general\n2 2 1\n1 1 1\n2 1 1\n",
        ":4: more entries than the 1 of the size line");
    add("NaN", real + "general\n2 2 2\n1 1 1\n2 1 nan\n", ":4: the value 'nan' is not finite");
    add("infinity", real + "general\n2 2 2\n1 1 -inf\n2 1 1\n", ":3: the value '-inf' is not");
    add("number beyond double", real + "general\n2 2 1\n1 1 1e400\n", ":3: the value '1e400'");
    add("entry in the wrong triangle", real + "symmetric\n2 2 2\n1 1 1\n1 2 1\n",
        ":4: entry (1, 2) of a symmetric file lies in the upper triangle");
    add("not symmetric", real + "general\n2 2 2\n1 2 1\n2 1 1.5\n",
        "not symmetric: a(1, 2) = 1, but a(2, 1) = 1.5; ||A - A^H||_F is about");
    add("not Hermitian", "%%MatrixMarket matrix coordinate complex symmetric\n2 2 1\n2 1 3 1\n",
        "not Hermitian: a(1, 2) = 3+1i, but conj a(2, 1) = 3-1i; ||A - A^H||_F is about");
    add("entry whose square overflows", real + "symmetric\n2 2 2\n1 1 1.797e308\n2 2 1\n",
        "entries up to 1.797e+308, row sums up to 1.797e+308: squares overflow in the solver's "
        "norms");
    add("entries whose row sum overflows",
        real + "symmetric\n2 2 3\n1 1 1.7e308\n2 1 1.7e308\n2 2 1\n",
        "entries up to 1.7e+308, row sums up to inf: squares overflow");
    add("square underflows, checksums", real + "symmetric\n1 1 1\n1 1 1e-300\n", "underflow");
    rows.back().script += " --abft detect";
    add("sum of duplicates overflows", real + "symmetric\n1 1 2\n1 1 1.7e308\n1 1 1.7e308\n",
        "the entries hold NaN or infinity");
    add("byte order mark", "\xEF\xBB\xBF" + real + "general\n1 1 1\n1 1 1\n",
        ":1: not a Matrix Market file: the first line does not start with '%%MatrixMarket'; the "
        "text starts with a UTF-8 byte order mark");
    add("lines of an old Mac", real + "general\r1 1 1\r1 1 1\r",
        "its lines end with CR only; convert them to LF");
    add("more rows than memory", real + "general\n1000000000000000 1000000000000000 1\n1 1 1\n",
        "000000000000000 rows take", 3);

    const std::string good = folder.write("good.mtx", real + "general\n3 3 1\n1 1 1.25\n");
    const std::string complex =
        folder.write("complex.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 0\n");
    const std::string cut = folder.path("cut.mtx.gz");
    EXPECT_EQ(std::system(("gzip -c " + good + " | head -c 60 >" + cut).c_str()), 0);
    rows.push_back({"truncated gzip file", "quiver eigs " + cut + " -k 1", 2, "is truncated"});
    const std::string longer = folder.path("longer.mtx.gz");
    EXPECT_EQ(std::system(("gzip -c " + good + " >" + longer + "; echo 1 >>" + longer).c_str()), 0);
    rows.push_back({"text behind gzip data", "quiver eigs " + longer + " -k 1", 2,
                    "the gzip data are followed by bytes that are not gzip data"});
    const std::string single = folder.write("single.mtx", real + "symmetric\n1 1 1\n1 1 1e20\n");
    rows.push_back({"square overflows in single precision, with checksums",
                    "quiver eigs " + single + " -k 1 --method jd --scalar s --abft detect", 2,
                    "scale the matrix, or omit --abft"});
    rows.push_back({"complex file, real scalars", "quiver eigs " + complex + " -k 1 --scalar d", 2,
                    "the matrix is complex, but --scalar d is real; use c or z"});
    rows.push_back({"results over the matrix", "quiver eigs " + good + " --json " + good, 2,
                    "is the matrix itself"});
    rows.push_back({"matrix over itself", "quiver gen " + good + " -o " + good, 2,
                    "-o " + good + " is the matrix itself"});
    rows.push_back({"vectors over the matrix", "quiver eigs " + good + " --vectors " + good, 2,
                    config::have_hdf5 ? "--vectors " + good + " is the matrix itself" : "HDF5"});
    rows.push_back(
        {"missing file", "quiver eigs missing.mtx", 2, "missing.mtx: there is no such file"});
    rows.push_back({"missing file of info", "quiver info missing.mtx", 2, "there is no such file"});
    rows.push_back({"folder for a file", "quiver eigs " + folder.path(""), 2, "is a directory"});
    const auto pencil = [&](const char* name, const std::string& b, const std::string& method,
                            const std::string& text) {
        const std::string file =
            folder.write("b" + std::to_string(rows.size()) + ".mtx", real + "symmetric\n3 3 " + b);
        rows.push_back({name,
                        "quiver eigs gen:laplace1d,nx=3 -k 1 --device host --method " + method +
                            " --mass " + file,
                        2, file + ": " + text});
    };
    const std::string indefinite = "3\n1 1 1\n2 2 1\n3 3 -1e-3\n";
    pencil("indefinite mass matrix for LOBPCG", indefinite, "lobpcg", indefinite_in_units);
    pencil("indefinite mass matrix for Jacobi-Davidson", indefinite, "jd",
           "Jacobi-Davidson: B is not positive definite: -");
    pencil("indefinite B, auto", indefinite, "auto",
           "shift-invert: B is not positive definite: it is zero or has an eigenvalue below -");
    pencil("indefinite mass matrix for block Lanczos", indefinite, "lanczos",
           "lanczos: B is not positive definite: its least diagonal entry is -0.001; ");
    pencil("singular mass matrix for the Chebyshev subspace", "4\n1 1 1\n2 2 1\n3 3 1\n2 1 1\n",
           "chebyshev", "chebyshev: B is not positive definite: a pivot of its factorisation is 0");
    rows.back().ranks = {1};
    pencil("negative mass matrix", "3\n1 1 -1e-9\n2 2 -1e-9\n3 3 -1e-9\n", "lobpcg",
           "inner product: B is not positive definite: x^H B x = -1e-09 for a unit vector x; ");
    pencil("singular mass matrix for LOBPCG", "2\n1 1 1\n2 2 1\n", "lobpcg",
           "lobpcg: B is not positive definite: its row 3 (counted from 1) is zero; shift-invert");
    rows.push_back({"device for a file", "quiver eigs /dev/null", 2,
                    "/dev/null: not a regular file; `-` for MATRIX reads standard input"});
    const std::string in_file = good + "/out";
    rows.push_back({"file for the folder of --json", "quiver eigs " + good + " --json " + in_file,
                    2, "--json: cannot write " + in_file + ": Not a directory"});
    rows.push_back({"file for the folder of -o", "quiver gen " + matrix + " -o " + in_file, 2,
                    "cannot write " + in_file + ": Not a directory"});
    if (config::have_hdf5) {
        rows.push_back({"file for the folder of --vectors",
                        "quiver eigs " + good + " --vectors " + in_file, 2,
                        "--vectors: cannot write " + in_file + ": Not a directory"});
        rows.push_back({"standard output for --vectors", "quiver eigs " + good + " --vectors -", 2,
                        "--vectors: cannot write -: an HDF5 file needs a regular file"});
    }
    rows.push_back({"two matrices from standard input", "quiver eigs - --mass -", 2,
                    "'-' is standard input, which can hold only one matrix"});
    rows.push_back({"two outputs to standard output",
                    "quiver solve " + good + " --rhs ones --json - -o -", 2,
                    "--json and -o name the same file, -"});
    rows.push_back({"standard input that is no matrix",
                    "echo 'no matrix' | quiver eigs -",
                    2,
                    "standard input:1: not a Matrix Market file",
                    {1}});
    rows.push_back({"standard input that ends early",
                    "gzip -c " + good + " | head -c 60 | quiver eigs -",
                    2,
                    "is truncated",
                    {1}});
    rows.push_back({"file without a name", "quiver eigs ''", 2, "'': there is no such file"});
    return rows;
}

/// Wrong arguments of the command line.
std::vector<Row> option_rows() {
    std::vector<Row> rows;
    const auto add = [&](const char* name, const std::string& arguments, const std::string& text) {
        rows.push_back({name, "quiver " + arguments, 2, text});
    };
    add("no subcommand", "", "which subcommand; there are: bench, ed, eigs");
    add("unknown subcommand", "foo", "there is no subcommand 'foo'; there are: bench, ed, eigs");
    add("mistyped subcommand", "eig " + matrix, "there is no subcommand 'eig'; close ones: eigs");
    add("no matrix", "eigs", "eigs: MATRIX is required; see quiver eigs --help");
    add("unknown option", "eigs " + matrix + " --wich largest", "--wich");
    add("bad word of an option", "eigs " + matrix + " --which middle", "middle is not one of");
    add("no number", "eigs " + matrix + " -k ten",
        "eigs: -k ten: a whole number up to 2147483647 is wanted");
    add("number beyond 32 bits", "eigs " + matrix + " -k 99999999999",
        "eigs: -k 99999999999: a whole number up to 2147483647 is wanted");
    add("number beyond 64 bits", "eigs " + matrix + " --max-iterations 99999999999999999999",
        "a whole number up to 9223372036854775807 is wanted");
    add("fraction for a whole number", "eigs " + matrix + " --block 1.5",
        "eigs: --block 1.5: a whole number");
    add("tolerance that is no number", "eigs " + matrix + " --tol small",
        "eigs: --tol small: a number is wanted");
    add("option without its number", "eigs " + matrix + " -k ''", "eigs: -k '': a whole number");
    add("k = 0", "eigs " + matrix + " -k 0", "-k 0: ask for at least one");
    add("k < 0", "eigs " + matrix + " -k -3", "-k -3: ask for at least one");
    add("k > rows", "eigs " + matrix + " -k 11", "-k 11: the matrix has 10 rows");
    add("block < 0", "eigs " + matrix + " --block -1", "--block -1: 1 to 64 columns");
    add("block > 64", "eigs " + matrix + " --block 65", "--block 65: 1 to 64 columns");
    add("block > rows", "eigs " + matrix + " -k 2 --block 11",
        "--block 11: the matrix has 10 rows");
    add("basis < 0", "eigs " + matrix + " --basis -1", "--basis -1");
    add("basis too small", "eigs gen:laplace1d,nx=100 -k 5 --block 2 --basis 10",
        "--basis 10: -k 5 takes at least 11 columns");
    add("basis too small for a small matrix", "eigs " + matrix + " -k 9 --basis 9",
        "--basis 9: -k 9 takes at least 10 columns");
    add("tolerance 0", "eigs " + matrix + " --tol 0", "--tol 0: a tolerance");
    add("tolerance NaN", "eigs " + matrix + " --tol nan", "--tol nan: a tolerance");
    add("tolerance 1", "eigs " + matrix + " --tol 1", "--tol 1: a tolerance");
    add("mass matrix of another size", "eigs " + matrix + " --mass gen:laplace1d,nx=9",
        "--mass gen:laplace1d,nx=9: 9 rows, but the matrix has 10");
    add("mass matrix missing", "eigs " + matrix + " --mass none.mtx", "none.mtx: there is no such");
    add("mass matrix not symmetric", "eigs gen:laplace1d,nx=64 --mass gen:matpde,n=8",
        "gen:matpde,n=8: the matrix is not symmetric");
    add("mass matrix and checksums for block Lanczos",
        "eigs " + matrix + " --method lanczos --abft detect --mass " + matrix,
        "--mass: --method lanczos supports no --checkpoint, --resume, --abft or --inject with it; "
        "lobpcg and jd do");
    add("preconditioner that is unknown", "eigs " + matrix + " --precond magic",
        "preconditioner 'magic' is unknown: none, jacobi");
    add("preconditioner for block Lanczos", "eigs " + matrix + " --method lanczos --precond ic",
        "--precond ic: --method lanczos only multiplies with A; lobpcg and jd take one");
    add("preconditioner of an indefinite matrix",
        "eigs gen:anderson,L=6 -k 2 --device host --precond ic",
        "is not positive, even with twice the diagonal: the matrix is far from positive definite");
    const std::string anderson = "eigs gen:anderson,L=6 -k 2 --device host ";
    add("indefinite preconditioner for LOBPCG", anderson + "--method lobpcg --precond jacobi",
        "--precond jacobi: LOBPCG: the preconditioner T is not positive definite: ");
    add("indefinite preconditioner for Jacobi-Davidson", anderson + "--method jd --precond jacobi",
        "block products; ldlt,shift=VALUE with a value near the wanted ones is positive definite");
    add("bound of a preconditioner's key", "eigs " + matrix + " --precond block-jacobi,size=65",
        "preconditioner block-jacobi: size=65: a whole number from 1 to 64 is wanted");
    add("preconditioner's key twice", "eigs " + matrix + " --precond ic,sweeps=1,sweeps=2",
        "preconditioner ic: the key sweeps is given twice");
    add("no iterations", "eigs " + matrix + " --max-iterations=-1",
        "--max-iterations -1: at least 1");
    add("negative seed", "eigs " + matrix + " --seed -1",
        "eigs: --seed -1: a whole number from 0 to 9223372036854775807 is wanted");
    add("unknown generator", "eigs gen:laplac3d", "no generator 'laplac3d'; close ones: laplace1d");
    add("no generator at all alike", "eigs gen:qqqqqq", "; there are: laplace1d, laplace2d");
    add("generator without gen:", "eigs laplace3d,nx=4",
        "there is no such file; for a generated matrix write gen:laplace3d,nx=4");
    add("unknown key", "eigs gen:laplace3d,n=4", "has no key 'n'; close ones: nx, ny, nz");
    add("key without value", "eigs gen:laplace3d,nx", "nx=VALUE");
    add("key twice", "eigs gen:laplace3d,nx=4,nx=4", "the key nx is given twice");
    add("bad value of a key", "eigs gen:laplace3d,nx=4.5", "nx=4.5: a whole number from 1 on");
    add("no number for a key", "eigs gen:anderson,L=4,W=wide", "W=wide: a number is wanted");
    add("infinite value of a key", "eigs gen:anderson,L=4,W=1d999", "W=1d999: a finite number");
    add("bad word of a key", "eigs gen:graphene,boundary=ajar", "one of open|periodic is wanted");
    add("comma at the end", "eigs gen:laplace1d,nx=10,", "a comma without a key=value after it");
    add("generated size beyond 64 bits", "eigs gen:laplace3d,nx=10000000", "does not fit 64 bits");
    add("matrix not symmetric", "eigs gen:matpde,n=8", "the matrix is not symmetric: a(");
    add("--json without a name", "eigs " + matrix + " --json ''", "--json '': the name of a file");
    add("bench --json without a name", "bench kernels dots --json ''",
        "the name of a file is wanted");
    rows.back().ranks = {1};
    add("-o without a name", "gen " + matrix + " -o ''", "cannot write ''");
    add("a folder for --json", "eigs " + matrix + " --json .",
        "--json: cannot write .: it is a directory");
    add("unknown kernel", "bench kernels foo", "there is no kernel foo: tsmttsm, ");
    rows.back().ranks = {1};
    add("unknown kernel of tune", "tune foo", "tune: \"foo\" is not one of tsmttsm, tsmm, gram");
    rows.back().ranks = {1};
    add("tune of width 0", "tune --widths 0", "--widths: \"0\" is not a whole number from 1 to");
    rows.back().ranks = {1};
    add("tune on two ranks", "tune --widths 1", "tune: one process times one GPU");
    rows.back().ranks = {2};
    add("bench on two ranks", "bench kernels dots", "run it without mpirun");
    rows.back().ranks = {2};
    add("weights that are no numbers", "eigs " + matrix + " --weights 1,x", "'x' is not a number");
    add("too many weights", "eigs " + matrix + " --weights 1,2,3,4,5", "5 weights for ");
    add("a mixed run of another method", "eigs " + matrix + " --device mixed --method jd",
        "--device mixed: block Lanczos");
    add("scaling with shapes", "bench scaling --widths 3", "--widths");
    add("a chain of odd length", "bench scaling --length 7", "--length even");
    if (config::have_hdf5) {
        add("--vectors without a name", "eigs " + matrix + " --vectors ''", "--vectors ''");
    }
    rows.push_back({"no GPU",
                    "export CUDA_VISIBLE_DEVICES=\nquiver eigs " + matrix + " --device cuda", 2,
                    "--device host"});
    return rows;
}

/// Machines with too little memory or disk space.
std::vector<Row> machine_rows() {
    std::vector<Row> rows;
    const auto add = [&](const char* name, const std::string& script, const std::string& text) {
        rows.push_back({name, script, 3, text});
    };
    add("generated beyond any memory", "quiver eigs gen:laplace3d,nx=1000000",
        "1000000000000000000 rows, 7.0 entries of 16 bytes in each");
    if (!address_space_is_vast) {
        const std::string small = "ulimit -v 2000000\nquiver eigs gen:laplace";
        add("generated beyond this memory", small + "3d,nx=400 -k 1 --device host",
            "64000000 rows, 7.0 entries of 16 bytes in each");
        // The basis takes at least 2.6 GB on one rank and 1.3 GB on each of two, which also map
        // memory of MPI and of threads.
        add("basis beyond this memory", small + "1d,nx=800000 -k 1 --basis 400 --device host",
            " MB of memory on this rank");
    }
    if (std::filesystem::exists("/dev/full")) {
        const std::string full = "cannot write to stdout: ";
        add("eigs to a full disk", "quiver eigs " + matrix + " >/dev/full", full);
        add("info to a full disk", "quiver info " + matrix + " >/dev/full", full);
        add("info devices to a full disk", "quiver info devices >/dev/full", full);
        add("gen --list to a full disk", "quiver gen --list >/dev/full", full);
        add("gen to a full disk", "quiver gen " + matrix + " >/dev/full", full);
        add("help to a full disk", "quiver --help >/dev/full", full);
        add("bench to a full disk",
            "quiver bench kernels dots --widths 1 --rows 1000 --budget 1 --device host >/dev/full",
            full);
        rows.back().ranks = {1};
    }
    if (files_may_be_limited) {
        // No file may grow beyond one block. MPI usually shares memory through files; the two
        // variables prevent this.
        const std::string limit =
            "trap '' XFSZ\nexport OMPI_MCA_btl=self,tcp PMIX_MCA_gds=hash\nulimit -f 1\nquiver ";
        add("disk full under -o", limit + "gen gen:laplace1d,nx=9999 -o a.mtx >/dev/null",
            "cannot write a.mtx");
        add("disk full under -o, gzip'd",
            limit + "gen gen:laplace1d,nx=99999 -o a.mtx.gz >/dev/null", "cannot write a.mtx.gz");
        add("disk full under --json",
            limit + "eigs " + matrix + " --device host --json a.json >/dev/null",
            "cannot write a.json");
        if (config::have_hdf5) {
            add("disk full under --vectors",
                limit + "eigs " + matrix + " --device host --vectors a.h5 >/dev/null", "a.h5");
        }
    }
    return rows;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        // Open MPI's daemon reports the signal of the file limit.
        if (line.find("Forwarding signal") == std::string::npos) {
            lines.push_back(line);
        }
    }
    return lines;
}

struct Run {
    Run(Row row_, int ranks_) : row(std::move(row_)), ranks(ranks_) {}

    Row row;
    int ranks;
    Folder work;
    Outcome outcome;
};

void check(const Run& run) {
    const Outcome& outcome = run.outcome;
    SCOPED_TRACE(run.row.name + " on " + std::to_string(run.ranks) + " ranks: " + run.row.script);
    EXPECT_EQ(outcome.status, run.row.status) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find("MPI_ABORT"), std::string::npos) << outcome.err;
    // mpirun adds its own lines about the exit status.
    std::vector<std::string> lines = lines_of(outcome.err);
    EXPECT_TRUE(run.ranks > 1 || lines.size() == 1) << outcome.err;
    std::erase_if(lines, [](const std::string& line) { return !line.starts_with("quiver: "); });
    EXPECT_EQ(lines.size(), 1u) << outcome.err;
    const std::string line = lines.empty() ? "" : lines[0];
    EXPECT_NE(line.find(run.row.text), std::string::npos)
        << "wanted: " << run.row.text << "\nsaid:   " << line;
    for (const auto& left : std::filesystem::directory_iterator(run.work.path(""))) {
        ADD_FAILURE() << "left behind: " << left;
    }
    if (run.ranks == run.row.ranks.front()) {
        std::printf("| %s | %d | %s |\n", run.row.name.c_str(), outcome.status, line.c_str());
    }
}

/// Runs every row on its numbers of ranks and prints name, status and line. Makes `at_once` runs at
/// the same time, because starting and ending mpirun takes most of the time.
void check(const std::vector<Row>& rows, std::size_t at_once) {
    std::list<Run> runs;
    for (const Row& row : rows) {
        for (const int ranks : row.ranks) {
            runs.emplace_back(row, ranks);
        }
    }
    std::mutex mutex;
    auto next = runs.begin();
    const auto work = [&] {
        while (true) {
            Run* run = nullptr;
            {
                const std::lock_guard<std::mutex> lock(mutex);
                if (next == runs.end()) {
                    return;
                }
                run = &*next++;
            }
            run->outcome = run_script(run->row.script, run->ranks, run->work, most_seconds);
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < at_once; ++i) {
        threads.emplace_back(work);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (const Run& run : runs) {
        check(run);
    }
}

TEST(Misuse, OfFilesIsRefusedWithOneLine) {
    const Folder folder;
    check(file_rows(folder), 4);
}

TEST(Misuse, OfTheCommandLineIsRefusedWithOneLine) {
    check(option_rows(), 4);
}

TEST(Failure, OfTheMachineIsReportedInOneLine) {
    check(machine_rows(), 1);
}

TEST(Device, AutoTakesTheHostWithoutAGpu) {
    const Folder work;
    const Outcome outcome = run_script(
        "export CUDA_VISIBLE_DEVICES=\nquiver eigs " + matrix + " -k 2", 1, work, most_seconds);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("device      host (no GPU: "), std::string::npos) << outcome.out;
}

TEST(Misuse, KeepsAnOlderJson) {
    const Folder folder;
    const std::string json = folder.write("out.json", "precious");
    const Outcome outcome = run_command("eigs gen:laplace1d,nx=10 -k 11 --json " + json);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(read_file(json), "precious");
}

}  // namespace
}  // namespace quiver::test
