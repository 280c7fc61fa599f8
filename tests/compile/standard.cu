/* SPDX-License-Identifier: Apache-2.0 */
/* What the standard headers promise, for NVRTC with ours and for a host compiler with its own. */
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

struct plain {
    int a;
};
struct base {
    float f;
};
struct derived : base {
    double d;
};
union both {
    int i;
    float f;
};
enum class color : short { red };

#define SAME(...) static_assert(std::is_same<__VA_ARGS__>::value, #__VA_ARGS__)
#define YES(...) static_assert(__VA_ARGS__, #__VA_ARGS__)
#define NO(...) static_assert(!(__VA_ARGS__), #__VA_ARGS__)

SAME(std::remove_const<const int>::type, int);
SAME(std::remove_const<const int *>::type, const int *);
SAME(std::remove_cv<const volatile int>::type, int);
SAME(std::remove_reference<int &&>::type, int);
SAME(std::remove_extent<int[3]>::type, int);
SAME(std::remove_pointer<int *const>::type, int);
SAME(std::remove_pointer<int **>::type, int *);
SAME(std::add_pointer<int &>::type, int *);
SAME(std::conditional<(sizeof(int) > 2), char, long>::type, char);
SAME(std::enable_if<true, int>::type, int);
SAME(std::underlying_type<color>::type, short);
SAME(std::make_unsigned<char>::type, unsigned char);
SAME(std::make_signed<unsigned long>::type, long);
YES(std::is_integral<const bool>::value &&std::is_integral<unsigned long long>::value);
NO(std::is_integral<float>::value || std::is_integral<color>::value || std::is_integral<int *>::value);
YES(std::is_floating_point<const double>::value);
NO(std::is_floating_point<int>::value);
YES(std::is_arithmetic<char>::value &&std::is_signed<float>::value &&std::is_unsigned<bool>::value);
NO(std::is_signed<unsigned>::value || std::is_unsigned<int>::value || std::is_signed<plain>::value ||
   std::is_unsigned<plain *>::value);
YES(std::is_void<const void>::value &&std::is_pointer<int *const>::value &&std::is_array<int[2]>::value);
NO(std::is_void<int>::value || std::is_pointer<int &>::value || std::is_pointer<int>::value ||
   std::is_array<int *>::value);
YES(std::is_reference<int &>::value &&std::is_rvalue_reference<int &&>::value
        &&std::is_lvalue_reference<int &>::value);
NO(std::is_reference<int *>::value);
YES(std::is_const<const int>::value &&std::is_volatile<volatile int>::value);
NO(std::is_const<const int *>::value);
YES(std::is_enum<color>::value &&std::is_class<plain>::value &&std::is_union<both>::value);
YES(std::is_base_of<base, derived>::value &&std::is_convertible<int, double>::value);
NO(std::is_base_of<derived, base>::value || std::is_convertible<plain, int>::value);
YES(std::is_trivially_copyable<plain>::value &&std::is_standard_layout<plain>::value);
NO(std::is_standard_layout<derived>::value);
YES(std::true_type::value && !std::false_type() && std::integral_constant<int, 7>()() == 7);
SAME(std::remove_reference_t<int &>, int);
SAME(std::enable_if_t<true>, void);
SAME(std::conditional_t<false, int, char>, char);
SAME(std::void_t<int, char>, void);
YES(std::is_same_v<int, int> &&std::is_integral_v<int> &&std::is_convertible_v<int, float>);

#define LIMITS(T, least, most, n)                                                             \
    YES(std::numeric_limits<T>::min() == (least) && std::numeric_limits<T>::max() == (most)); \
    YES(std::numeric_limits<T>::digits == (n) && std::numeric_limits<const T>::is_integer)
LIMITS(signed char, -128, 127, 7);
LIMITS(unsigned char, 0, 255, 8);
LIMITS(short, -32768, 32767, 15);
LIMITS(unsigned short, 0, 65535, 16);
LIMITS(int, -2147483647 - 1, 2147483647, 31);
LIMITS(unsigned, 0, 4294967295u, 32);
LIMITS(long long, -9223372036854775807ll - 1, 9223372036854775807ll, 63);
LIMITS(unsigned long long, 0, 18446744073709551615ull, 64);
LIMITS(int64_t, INT64_MIN, INT64_MAX, 63);
YES(std::numeric_limits<float>::max() == 0x1.fffffep127f && std::numeric_limits<float>::min() == 0x1p-126f);
YES(std::numeric_limits<float>::lowest() == -0x1.fffffep127f &&
    std::numeric_limits<float>::epsilon() == 0x1p-23f);
YES(std::numeric_limits<float>::denorm_min() == 0x1p-149f && std::numeric_limits<float>::digits == 24);
YES(std::numeric_limits<double>::max() == 0x1.fffffffffffffp1023 &&
    std::numeric_limits<double>::min() == 0x1p-1022);
YES(std::numeric_limits<double>::epsilon() == 0x1p-52 &&
    std::numeric_limits<double>::denorm_min() == 0x1p-1074);
YES(std::numeric_limits<double>::infinity() > std::numeric_limits<double>::max() &&
    std::numeric_limits<float>::has_infinity);
YES(std::numeric_limits<int>::is_signed && !std::numeric_limits<unsigned>::is_signed &&
    std::numeric_limits<int>::digits10 == 9);
NO(std::numeric_limits<plain>::is_specialized);
YES(INFINITY > 0x1.fffffep127f && HUGE_VAL > 0x1.fffffffffffffp1023 && M_PI > 3.14159265358979 &&
    M_SQRT1_2 * M_SQRT1_2 < 0.5000001);
YES(sizeof(std::sqrt(1.0f)) == 4 && sizeof(std::sqrt(1.0)) == 8 && sizeof(std::fabs(1.0f)) == 4);

extern "C" __global__ void standard(float *x, double *y, int n)
{
    assert(n > 0);
    float nan = std::numeric_limits<float>::quiet_NaN();
    unsigned bits;
    std::memcpy(&bits, &nan, 4);
    x[0] = std::isnan(nan) && bits >> 22 == 0x1ff ? 1 : 0;
    x[1] = NAN;
    x[2] = std::sqrt(x[3]) + std::pow(x[3], 2.0f) + std::abs(x[4]) + std::fmax(x[1], x[2]);
    y[0] = std::exp(y[1]) + std::numeric_limits<double>::quiet_NaN();
    std::printf("%d\n", std::abs(n));
    float z = std::move(x[0]);
    x[0] = std::forward<float>(z);
    new (x + 5) plain{1};
    for (int i : {1, 2})
        x[i] += i;
    void *p = std::malloc(8);
    std::free(p);
}
