// The kernels for one instruction set: compiled once for each, with DENDRITREE_ISA as its name.
#include "backward.hpp"
#include "dense.hpp"
#include "kernels.hpp"
#include "normalize.hpp"

#define TABLE_(isa) kernels_##isa
#define TABLE(isa) TABLE_(isa)

namespace DENDRITREE_ISA {

extern const Kernels table = {
    {{forward<float, 16>, forward<float, 64>, forward<float, 128>}, {forward<double, 16>, forward<double, 64>, nullptr}},
    {{backward<float, 16>, backward<float, 64>, backward<float, 128>}, {backward<double, 16>, backward<double, 64>, nullptr}},
    {dense<float>, dense<double>},
    {normalize<float>, normalize<double>},
};

}  // namespace DENDRITREE_ISA

extern const Kernels *const TABLE(DENDRITREE_ISA);
const Kernels *const TABLE(DENDRITREE_ISA) = &DENDRITREE_ISA::table;
