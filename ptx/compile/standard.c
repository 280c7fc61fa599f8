/* SPDX-License-Identifier: Apache-2.0 */
/* The standard headers that a kernel may include where NVRTC has no folder of any: what of them makes sense
 * on a device, and no more. Names beginning with kregistry_ are ours. */
#include "ptx/compile/nvrtc.h"

/* Types and spellings are those of libcu++ under NVRTC, so that a kernel may include both. */
#define STDINT_TEXT                                                     \
    "#pragma once\n"                                                    \
    "typedef signed char int8_t; typedef unsigned char uint8_t;\n"      \
    "typedef short int16_t; typedef unsigned short uint16_t;\n"         \
    "typedef int int32_t; typedef unsigned int uint32_t;\n"             \
    "typedef long long int64_t; typedef unsigned long long uint64_t;\n" \
    "typedef int8_t int_least8_t; typedef uint8_t uint_least8_t;\n"     \
    "typedef int16_t int_least16_t; typedef uint16_t uint_least16_t;\n" \
    "typedef int32_t int_least32_t; typedef uint32_t uint_least32_t;\n" \
    "typedef int64_t int_least64_t; typedef uint64_t uint_least64_t;\n" \
    "typedef int8_t int_fast8_t; typedef uint8_t uint_fast8_t;\n"       \
    "typedef int16_t int_fast16_t; typedef uint16_t uint_fast16_t;\n"   \
    "typedef int32_t int_fast32_t; typedef uint32_t uint_fast32_t;\n"   \
    "typedef int64_t int_fast64_t; typedef uint64_t uint_fast64_t;\n"   \
    "typedef int64_t intptr_t; typedef uint64_t uintptr_t;\n"           \
    "typedef int64_t intmax_t; typedef uint64_t uintmax_t;\n"           \
    "#include <kregistry/limits.h>\n"                                   \
    "#define INT8_MIN SCHAR_MIN\n"                                      \
    "#define INT8_MAX SCHAR_MAX\n"                                      \
    "#define UINT8_MAX UCHAR_MAX\n"                                     \
    "#define INT16_MIN SHRT_MIN\n"                                      \
    "#define INT16_MAX SHRT_MAX\n"                                      \
    "#define UINT16_MAX USHRT_MAX\n"                                    \
    "#define INT32_MIN INT_MIN\n"                                       \
    "#define INT32_MAX INT_MAX\n"                                       \
    "#define UINT32_MAX UINT_MAX\n"                                     \
    "#define INT64_MIN LLONG_MIN\n"                                     \
    "#define INT64_MAX LLONG_MAX\n"                                     \
    "#define UINT64_MAX ULLONG_MAX\n"                                   \
    "#define INTPTR_MIN INT64_MIN\n"                                    \
    "#define INTPTR_MAX INT64_MAX\n"                                    \
    "#define UINTPTR_MAX UINT64_MAX\n"                                  \
    "#define INTMAX_MIN INT64_MIN\n"                                    \
    "#define INTMAX_MAX INT64_MAX\n"                                    \
    "#define UINTMAX_MAX UINT64_MAX\n"                                  \
    "#define PTRDIFF_MIN INT64_MIN\n"                                   \
    "#define PTRDIFF_MAX INT64_MAX\n"                                   \
    "#define SIZE_MAX UINT64_MAX\n"

#define STD(names) "namespace std { " names " }\n"
#define USING(width)                                                                  \
    "using ::int" width "_t; using ::uint" width "_t; using ::int_least" width "_t; " \
    "using ::uint_least" width "_t; using ::int_fast" width "_t; using ::uint_fast" width "_t; "

#define LIMITS_TEXT                            \
    "#pragma once\n"                           \
    "#define CHAR_BIT 8\n"                     \
    "#define SCHAR_MIN (-128)\n"               \
    "#define SCHAR_MAX 127\n"                  \
    "#define UCHAR_MAX 255\n"                  \
    "#define CHAR_MIN SCHAR_MIN\n"             \
    "#define CHAR_MAX SCHAR_MAX\n"             \
    "#define SHRT_MIN (-SHRT_MAX - 1)\n"       \
    "#define SHRT_MAX 0x7fff\n"                \
    "#define USHRT_MAX 0xffff\n"               \
    "#define INT_MIN (-INT_MAX - 1)\n"         \
    "#define INT_MAX 0x7fffffff\n"             \
    "#define UINT_MAX 0xffffffff\n"            \
    "#define LONG_MIN (-LONG_MAX - 1)\n"       \
    "#define LONG_MAX LLONG_MAX\n"             \
    "#define ULONG_MAX ULLONG_MAX\n"           \
    "#define LLONG_MIN (-LLONG_MAX - 1)\n"     \
    "#define LLONG_MAX 0x7fffffffffffffffLL\n" \
    "#define ULLONG_MAX 0xffffffffffffffffUL\n"

#define FLOAT_TEXT                                 \
    "#pragma once\n"                               \
    "#define FLT_RADIX 2\n"                        \
    "#define FLT_EVAL_METHOD 0\n"                  \
    "#define FLT_MANT_DIG 24\n"                    \
    "#define FLT_DIG 6\n"                          \
    "#define FLT_DECIMAL_DIG 9\n"                  \
    "#define FLT_MIN_EXP (-125)\n"                 \
    "#define FLT_MAX_EXP 128\n"                    \
    "#define FLT_MIN_10_EXP (-37)\n"               \
    "#define FLT_MAX_10_EXP 38\n"                  \
    "#define FLT_MIN 1.17549435e-38f\n"            \
    "#define FLT_MAX 3.40282347e+38f\n"            \
    "#define FLT_EPSILON 1.19209290e-7f\n"         \
    "#define FLT_TRUE_MIN 1.40129846e-45f\n"       \
    "#define DBL_MANT_DIG 53\n"                    \
    "#define DBL_DIG 15\n"                         \
    "#define DBL_DECIMAL_DIG 17\n"                 \
    "#define DBL_MIN_EXP (-1021)\n"                \
    "#define DBL_MAX_EXP 1024\n"                   \
    "#define DBL_MIN_10_EXP (-307)\n"              \
    "#define DBL_MAX_10_EXP 308\n"                 \
    "#define DBL_MIN 2.2250738585072014e-308\n"    \
    "#define DBL_MAX 1.7976931348623157e+308\n"    \
    "#define DBL_EPSILON 2.2204460492503131e-16\n" \
    "#define DBL_TRUE_MIN 4.9406564584124654e-324\n"

#define STDDEF_TEXT                                                                \
    "#pragma once\n"                                                               \
    "typedef unsigned long size_t;\n"                                              \
    "typedef long ptrdiff_t;\n"                                                    \
    "#ifndef NULL\n"                                                               \
    "#define NULL 0\n"                                                             \
    "#endif\n"                                                                     \
    "#ifndef offsetof\n"                                                           \
    "#define offsetof(type, member) ((size_t)__INTADDR__(&((type *)0)->member))\n" \
    "#endif\n"

#define MATH_TEXT                                 \
    "#pragma once\n"                              \
    "#define INFINITY (1.0f / 0.0f)\n"            \
    "#define HUGE_VALF INFINITY\n"                \
    "#define HUGE_VAL (1.0 / 0.0)\n"              \
    "#define NAN (-(0.0f / 0.0f))\n"              \
    "#define M_E 2.7182818284590452354\n"         \
    "#define M_LOG2E 1.4426950408889634074\n"     \
    "#define M_LOG10E 0.43429448190325182765\n"   \
    "#define M_LN2 0.69314718055994530942\n"      \
    "#define M_LN10 2.30258509299404568402\n"     \
    "#define M_PI 3.14159265358979323846\n"       \
    "#define M_PI_2 1.57079632679489661923\n"     \
    "#define M_PI_4 0.78539816339744830962\n"     \
    "#define M_1_PI 0.31830988618379067154\n"     \
    "#define M_2_PI 0.63661977236758134308\n"     \
    "#define M_2_SQRTPI 1.12837916709551257390\n" \
    "#define M_SQRT2 1.41421356237309504880\n"    \
    "#define M_SQRT1_2 0.70710678118654752440\n"

#define TYPE_TRAITS_TEXT                                                                                     \
    "#pragma once\n"                                                                                         \
    "namespace std {\n"                                                                                      \
    "template <class T, T v> struct integral_constant {\n"                                                   \
    "    typedef T value_type;\n"                                                                            \
    "    typedef integral_constant type;\n"                                                                  \
    "    static constexpr T value = v;\n"                                                                    \
    "    __device__ constexpr operator T() const { return v; }\n"                                            \
    "    __device__ constexpr T operator()() const { return v; }\n"                                          \
    "};\n"                                                                                                   \
    "template <bool v> using bool_constant = integral_constant<bool, v>;\n"                                  \
    "typedef bool_constant<true> true_type;\n"                                                               \
    "typedef bool_constant<false> false_type;\n"                                                             \
    "#define KREGISTRY_TYPE(name) template <class T> using name##_t = typename name<T>::type;\n"             \
    "#if __cplusplus >= 201703L\n"                                                                           \
    "#define KREGISTRY_VALUE(name) template <class T> inline constexpr bool name##_v = name<T>::value;\n"    \
    "#define KREGISTRY_VALUE2(name) template <class T, class U> inline constexpr bool name##_v = name<T, "   \
    "U>::value;\n"                                                                                           \
    "#else\n"                                                                                                \
    "#define KREGISTRY_VALUE(name)\n"                                                                        \
    "#define KREGISTRY_VALUE2(name)\n"                                                                       \
    "#endif\n"                                                                                               \
    "#define KREGISTRY_IS(name, test) \\\n"                                                                  \
    "    template <class T> struct name : bool_constant<(test)> {}; \\\n"                                    \
    "    KREGISTRY_VALUE(name)\n"                                                                            \
    "#define KREGISTRY_ARE(name, test) \\\n"                                                                 \
    "    template <class T, class U> struct name : bool_constant<(test)> {}; \\\n"                           \
    "    KREGISTRY_VALUE2(name)\n"                                                                           \
    "template <bool test, class T, class U> struct conditional { typedef T type; };\n"                       \
    "template <class T, class U> struct conditional<false, T, U> { typedef U type; };\n"                     \
    "template <bool test, class T, class U> using conditional_t = typename conditional<test, T, U>::type;\n" \
    "template <bool test, class T = void> struct enable_if {};\n"                                            \
    "template <class T> struct enable_if<true, T> { typedef T type; };\n"                                    \
    "template <bool test, class T = void> using enable_if_t = typename enable_if<test, T>::type;\n"          \
    "template <class...> struct kregistry_void { typedef void type; };\n"                                    \
    "template <class... T> using void_t = typename kregistry_void<T...>::type;\n"                            \
    "template <class T> struct remove_const { typedef T type; };\n"                                          \
    "template <class T> struct remove_const<const T> { typedef T type; };\n"                                 \
    "template <class T> struct remove_volatile { typedef T type; };\n"                                       \
    "template <class T> struct remove_volatile<volatile T> { typedef T type; };\n"                           \
    "template <class T> struct remove_cv : remove_const<typename remove_volatile<T>::type> {};\n"            \
    "template <class T> struct remove_reference { typedef T type; };\n"                                      \
    "template <class T> struct remove_reference<T &> { typedef T type; };\n"                                 \
    "template <class T> struct remove_reference<T &&> { typedef T type; };\n"                                \
    "template <class T> struct remove_cvref : remove_cv<typename remove_reference<T>::type> {};\n"           \
    "template <class T> struct remove_extent { typedef T type; };\n"                                         \
    "template <class T> struct remove_extent<T[]> { typedef T type; };\n"                                    \
    "template <class T, decltype(sizeof 0) n> struct remove_extent<T[n]> { typedef T type; };\n"             \
    "template <class T> struct remove_pointer { typedef T type; };\n"                                        \
    "template <class T> struct remove_pointer<T *> { typedef T type; };\n"                                   \
    "template <class T> struct remove_pointer<T *const> { typedef T type; };\n"                              \
    "template <class T> struct remove_pointer<T *volatile> { typedef T type; };\n"                           \
    "template <class T> struct remove_pointer<T *const volatile> { typedef T type; };\n"                     \
    "template <class T> struct add_const { typedef const T type; };\n"                                       \
    "template <class T> struct add_pointer { typedef typename remove_reference<T>::type *type; };\n"         \
    "template <class T> struct underlying_type { typedef __underlying_type(T) type; };\n"                    \
    "KREGISTRY_TYPE(remove_const) KREGISTRY_TYPE(remove_volatile) KREGISTRY_TYPE(remove_cv)\n"               \
    "KREGISTRY_TYPE(remove_reference) KREGISTRY_TYPE(remove_cvref) KREGISTRY_TYPE(remove_extent)\n"          \
    "KREGISTRY_TYPE(remove_pointer) KREGISTRY_TYPE(add_const) KREGISTRY_TYPE(add_pointer)\n"                 \
    "KREGISTRY_TYPE(underlying_type)\n"                                                                      \
    "template <class T, class U> struct is_same : false_type {};\n"                                          \
    "template <class T> struct is_same<T, T> : true_type {};\n"                                              \
    "KREGISTRY_VALUE2(is_same)\n"                                                                            \
    "template <class T> struct is_const : false_type {};\n"                                                  \
    "template <class T> struct is_const<const T> : true_type {};\n"                                          \
    "KREGISTRY_VALUE(is_const)\n"                                                                            \
    "template <class T> struct is_volatile : false_type {};\n"                                               \
    "template <class T> struct is_volatile<volatile T> : true_type {};\n"                                    \
    "KREGISTRY_VALUE(is_volatile)\n"                                                                         \
    "template <class T> struct is_lvalue_reference : false_type {};\n"                                       \
    "template <class T> struct is_lvalue_reference<T &> : true_type {};\n"                                   \
    "KREGISTRY_VALUE(is_lvalue_reference)\n"                                                                 \
    "template <class T> struct is_rvalue_reference : false_type {};\n"                                       \
    "template <class T> struct is_rvalue_reference<T &&> : true_type {};\n"                                  \
    "KREGISTRY_VALUE(is_rvalue_reference)\n"                                                                 \
    "template <class T> struct is_array : false_type {};\n"                                                  \
    "template <class T> struct is_array<T[]> : true_type {};\n"                                              \
    "template <class T, decltype(sizeof 0) n> struct is_array<T[n]> : true_type {};\n"                       \
    "KREGISTRY_VALUE(is_array)\n"                                                                            \
    "template <class T> struct kregistry_integral : false_type {};\n"                                        \
    "#define KREGISTRY_INTEGER(T, S, U) \\\n"                                                                \
    "    template <> struct kregistry_integral<T> : true_type { typedef S made_signed; typedef U "           \
    "made_unsigned; };\n"                                                                                    \
    "KREGISTRY_INTEGER(bool, void, void)\n"                                                                  \
    "KREGISTRY_INTEGER(char, signed char, unsigned char)\n"                                                  \
    "KREGISTRY_INTEGER(signed char, signed char, unsigned char)\n"                                           \
    "KREGISTRY_INTEGER(unsigned char, signed char, unsigned char)\n"                                         \
    "KREGISTRY_INTEGER(wchar_t, int, unsigned int)\n"                                                        \
    "KREGISTRY_INTEGER(char16_t, short, unsigned short)\n"                                                   \
    "KREGISTRY_INTEGER(char32_t, int, unsigned int)\n"                                                       \
    "KREGISTRY_INTEGER(short, short, unsigned short)\n"                                                      \
    "KREGISTRY_INTEGER(unsigned short, short, unsigned short)\n"                                             \
    "KREGISTRY_INTEGER(int, int, unsigned int)\n"                                                            \
    "KREGISTRY_INTEGER(unsigned int, int, unsigned int)\n"                                                   \
    "KREGISTRY_INTEGER(long, long, unsigned long)\n"                                                         \
    "KREGISTRY_INTEGER(unsigned long, long, unsigned long)\n"                                                \
    "KREGISTRY_INTEGER(long long, long long, unsigned long long)\n"                                          \
    "KREGISTRY_INTEGER(unsigned long long, long long, unsigned long long)\n"                                 \
    "template <class T> struct make_signed { typedef typename kregistry_integral<T>::made_signed type; };\n" \
    "template <class T> struct make_unsigned { typedef typename kregistry_integral<T>::made_unsigned type; " \
    "};\n"                                                                                                   \
    "KREGISTRY_TYPE(make_signed) KREGISTRY_TYPE(make_unsigned)\n"                                            \
    "KREGISTRY_IS(is_void, (is_same<typename remove_cv<T>::type, void>::value))\n"                           \
    "KREGISTRY_IS(is_integral, kregistry_integral<typename remove_cv<T>::type>::value)\n"                    \
    "KREGISTRY_IS(is_floating_point, (is_same<typename remove_cv<T>::type, float>::value ||\n"               \
    "                                 is_same<typename remove_cv<T>::type, double>::value))\n"               \
    "KREGISTRY_IS(is_arithmetic, is_integral<T>::value || is_floating_point<T>::value)\n"                    \
    "template <class T, bool = is_arithmetic<T>::value> struct kregistry_signed : bool_constant<(T(-1) < "   \
    "T(0))> {};\n"                                                                                           \
    "template <class T> struct kregistry_signed<T, false> : false_type {};\n"                                \
    "KREGISTRY_IS(is_signed, kregistry_signed<T>::value)\n"                                                  \
    "KREGISTRY_IS(is_unsigned, is_arithmetic<T>::value && !kregistry_signed<T>::value)\n"                    \
    "KREGISTRY_IS(is_reference, is_lvalue_reference<T>::value || is_rvalue_reference<T>::value)\n"           \
    "KREGISTRY_IS(is_pointer, !(is_same<typename remove_pointer<T>::type, T>::value))\n"                     \
    "KREGISTRY_IS(is_enum, __is_enum(T))\n"                                                                  \
    "KREGISTRY_IS(is_class, __is_class(T))\n"                                                                \
    "KREGISTRY_IS(is_union, __is_union(T))\n"                                                                \
    "KREGISTRY_IS(is_empty, __is_empty(T))\n"                                                                \
    "KREGISTRY_IS(is_standard_layout, __is_standard_layout(T))\n"                                            \
    "KREGISTRY_IS(is_trivially_copyable, __is_trivially_copyable(T))\n"                                      \
    "KREGISTRY_ARE(is_base_of, __is_base_of(T, U))\n"                                                        \
    "KREGISTRY_ARE(is_convertible, __is_convertible_to(T, U))\n"                                             \
    "#undef KREGISTRY_TYPE\n"                                                                                \
    "#undef KREGISTRY_VALUE\n"                                                                               \
    "#undef KREGISTRY_VALUE2\n"                                                                              \
    "#undef KREGISTRY_IS\n"                                                                                  \
    "#undef KREGISTRY_ARE\n"                                                                                 \
    "#undef KREGISTRY_INTEGER\n"                                                                             \
    "}\n"

#define NUMERIC_LIMITS_TEXT                                                                                  \
    "#pragma once\n"                                                                                         \
    "#include <kregistry/limits.h>\n"                                                                        \
    "#include <float.h>\n"                                                                                   \
    "namespace std {\n"                                                                                      \
    "template <class T> struct numeric_limits {\n"                                                           \
    "    static constexpr bool is_specialized = false;\n"                                                    \
    "};\n"                                                                                                   \
    "template <class T> struct numeric_limits<const T> : numeric_limits<T> {};\n"                            \
    "template <class T> struct numeric_limits<volatile T> : numeric_limits<T> {};\n"                         \
    "#define KREGISTRY_LIMITS(T, integer, n_digits, n_digits10, least, lowest_, most, step, inf, nan, "      \
    "smallest) \\\n"                                                                                         \
    "    template <> struct numeric_limits<T> { \\\n"                                                        \
    "        static constexpr bool is_specialized = true, is_bounded = true, is_signed = (T)-1 < (T)0; \\\n" \
    "        static constexpr bool is_integer = integer, is_exact = integer, is_iec559 = !integer; \\\n"     \
    "        static constexpr bool has_infinity = !integer, has_quiet_NaN = !integer; \\\n"                  \
    "        static constexpr int radix = 2, digits = n_digits, digits10 = n_digits10; \\\n"                 \
    "        __device__ static constexpr T min() { return least; } \\\n"                                     \
    "        __device__ static constexpr T lowest() { return lowest_; } \\\n"                                \
    "        __device__ static constexpr T max() { return most; } \\\n"                                      \
    "        __device__ static constexpr T epsilon() { return step; } \\\n"                                  \
    "        __device__ static constexpr T infinity() { return inf; } \\\n"                                  \
    "        __device__ static constexpr T quiet_NaN() { return nan; } \\\n"                                 \
    "        __device__ static constexpr T denorm_min() { return smallest; } \\\n"                           \
    "    };\n"                                                                                               \
    "#define KREGISTRY_INTEGER(T, digits, digits10, least, most) \\\n"                                       \
    "    KREGISTRY_LIMITS(T, true, digits, digits10, least, least, most, 0, 0, 0, 0)\n"                      \
    "KREGISTRY_INTEGER(bool, 1, 0, false, true)\n"                                                           \
    "KREGISTRY_INTEGER(char, 7, 2, CHAR_MIN, CHAR_MAX)\n"                                                    \
    "KREGISTRY_INTEGER(signed char, 7, 2, SCHAR_MIN, SCHAR_MAX)\n"                                           \
    "KREGISTRY_INTEGER(unsigned char, 8, 2, 0, UCHAR_MAX)\n"                                                 \
    "KREGISTRY_INTEGER(short, 15, 4, SHRT_MIN, SHRT_MAX)\n"                                                  \
    "KREGISTRY_INTEGER(unsigned short, 16, 4, 0, USHRT_MAX)\n"                                               \
    "KREGISTRY_INTEGER(int, 31, 9, INT_MIN, INT_MAX)\n"                                                      \
    "KREGISTRY_INTEGER(unsigned int, 32, 9, 0, UINT_MAX)\n"                                                  \
    "KREGISTRY_INTEGER(long, 63, 18, LONG_MIN, LONG_MAX)\n"                                                  \
    "KREGISTRY_INTEGER(unsigned long, 64, 19, 0, ULONG_MAX)\n"                                               \
    "KREGISTRY_INTEGER(long long, 63, 18, LLONG_MIN, LLONG_MAX)\n"                                           \
    "KREGISTRY_INTEGER(unsigned long long, 64, 19, 0, ULLONG_MAX)\n"                                         \
    "KREGISTRY_LIMITS(float, false, FLT_MANT_DIG, FLT_DIG, FLT_MIN, -FLT_MAX, FLT_MAX, FLT_EPSILON,\n"       \
    "                 1.0f / 0.0f, -(0.0f / 0.0f), FLT_TRUE_MIN)\n"                                          \
    "KREGISTRY_LIMITS(double, false, DBL_MANT_DIG, DBL_DIG, DBL_MIN, -DBL_MAX, DBL_MAX, DBL_EPSILON,\n"      \
    "                 1.0 / 0.0, -(0.0 / 0.0), DBL_TRUE_MIN)\n"                                              \
    "#undef KREGISTRY_INTEGER\n"                                                                             \
    "#undef KREGISTRY_LIMITS\n"                                                                              \
    "}\n"

#define CMATH_TEXT                                                                                           \
    "#pragma once\n"                                                                                         \
    "#include <math.h>\n"                                                                                    \
    "namespace std {\n"                                                                                      \
    "using ::abs; using ::acos; using ::acosh; using ::asin; using ::asinh; using ::atan; using ::atan2;\n"  \
    "using ::atanh; using ::cbrt; using ::ceil; using ::copysign; using ::cos; using ::cosh; using ::erf;\n" \
    "using ::erfc; using ::exp; using ::exp2; using ::expm1; using ::fabs; using ::fdim; using ::floor;\n"   \
    "using ::fma; using ::fmax; using ::fmin; using ::fmod; using ::frexp; using ::hypot; using ::ilogb;\n"  \
    "using ::isfinite; using ::isinf; using ::isnan; using ::ldexp; using ::lgamma; using ::llrint;\n"       \
    "using ::llround; using ::log; using ::log10; using ::log1p; using ::log2; using ::logb; using "         \
    "::lrint;\n"                                                                                             \
    "using ::lround; using ::modf; using ::nan; using ::nanf; using ::nearbyint; using ::nextafter; using "  \
    "::pow;\n"                                                                                               \
    "using ::remainder; using ::remquo; using ::rint; using ::round; using ::scalbln; using ::scalbn;\n"     \
    "using ::signbit; using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh; using ::tgamma;\n" \
    "using ::trunc;\n"                                                                                       \
    "}\n"

const kr__header kr__virtual_headers[] = {
    {"stdint.h", STDINT_TEXT},
    {"cstdint", "#pragma once\n#include <stdint.h>\n" STD(USING("8") USING("16") USING("32") USING(
                    "64") "using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;")},
    {"stddef.h", STDDEF_TEXT},
    {"cstddef", "#pragma once\n#include <stddef.h>\n" STD(
                    "using ::size_t; using ::ptrdiff_t; typedef decltype(nullptr) nullptr_t;")},
    {"kregistry/limits.h", LIMITS_TEXT}, /* for stdint.h, whatever limits.h is */
    {"limits.h", "#pragma once\n#include <kregistry/limits.h>\n"},
    {"climits", "#pragma once\n#include <limits.h>\n"},
    {"float.h", FLOAT_TEXT},
    {"cfloat", "#pragma once\n#include <float.h>\n"},
    {"stdbool.h", "#pragma once\n"},
    {"math.h", MATH_TEXT},
    {"cmath", CMATH_TEXT},
    {"limits", NUMERIC_LIMITS_TEXT},
    {"type_traits", TYPE_TRAITS_TEXT},
    {"cstdio", "#pragma once\n" STD("using ::printf;")},
    {"cstring", "#pragma once\n" STD("using ::memcpy; using ::memset;")},
    {"cstdlib", "#pragma once\n#include <cstddef>\n" STD(
                    "using ::abs; using ::labs; using ::llabs; using ::malloc; using ::free;")},
    /* What these declare NVRTC knows by itself. */
    {"assert.h", "#pragma once\n"},
    {"cassert", "#pragma once\n"},
    {"stdio.h", "#pragma once\n"},
    {"stdlib.h", "#pragma once\n"},
    {"string.h", "#pragma once\n"},
    {"initializer_list", "#pragma once\n"},
    {"new", "#pragma once\n"},
    {"utility", "#pragma once\n"},
};
const size_t kr__n_virtual_headers = KR_COUNT(kr__virtual_headers);
