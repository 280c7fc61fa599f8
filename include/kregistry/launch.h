/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_LAUNCH_H
#define KREGISTRY_LAUNCH_H

#include <kregistry/buffer.h>

#ifdef __cplusplus
#include <initializer_list>
extern "C" {
#endif

/* The element types of op arguments. X(enumerator, name in descriptors, bytes). */
#define KR_TYPE_LIST(X)      \
    X(KR_TYPE_U8, "u8", 1)   \
    X(KR_TYPE_I8, "i8", 1)   \
    X(KR_TYPE_U16, "u16", 2) \
    X(KR_TYPE_I16, "i16", 2) \
    X(KR_TYPE_U32, "u32", 4) \
    X(KR_TYPE_I32, "i32", 4) \
    X(KR_TYPE_U64, "u64", 8) \
    X(KR_TYPE_I64, "i64", 8) \
    X(KR_TYPE_F32, "f32", 4) \
    X(KR_TYPE_F64, "f64", 8)

typedef enum kr_type {
#define KR_TYPE_ENUM(name, text, bytes) name,
    KR_TYPE_LIST(KR_TYPE_ENUM)
#undef KR_TYPE_ENUM
} kr_type;

KR_API const char *kr_type_name(kr_type type);
KR_API size_t kr_type_bytes(kr_type type);

/* One kernel argument: a scalar, a buffer of the library, or a raw device address. */
typedef enum kr_arg_kind { KR_ARG_SCALAR, KR_ARG_BUFFER, KR_ARG_POINTER } kr_arg_kind;

typedef struct kr_arg {
    kr_arg_kind kind;
    kr_type type; /* of a scalar */
    union {
        uint64_t u64;
        int64_t i64;
        double f64;
        float f32;
        kr_buffer *buffer;
        uint64_t pointer; /* a CUdeviceptr */
    } value;
    size_t offset_bytes; /* into the buffer */
} kr_arg;

typedef struct kr_args {
    const kr_arg *list;
    size_t n;
} kr_args;

static inline kr_arg kr_arg_unsigned(kr_type type, uint64_t value)
{
    kr_arg a = {KR_ARG_SCALAR, type, {value}, 0};
    return a;
}

static inline kr_arg kr_arg_signed(kr_type type, int64_t value)
{
    kr_arg a = {KR_ARG_SCALAR, type, {0}, 0};
    a.value.i64 = value;
    return a;
}

static inline kr_arg kr_arg_f32(float value)
{
    kr_arg a = {KR_ARG_SCALAR, KR_TYPE_F32, {0}, 0};
    a.value.f32 = value;
    return a;
}

static inline kr_arg kr_arg_f64(double value)
{
    kr_arg a = {KR_ARG_SCALAR, KR_TYPE_F64, {0}, 0};
    a.value.f64 = value;
    return a;
}

static inline kr_arg kr_arg_buffer(kr_buffer *buffer, size_t offset_bytes)
{
    kr_arg a = {KR_ARG_BUFFER, KR_TYPE_U64, {0}, offset_bytes};
    a.value.buffer = buffer;
    return a;
}

static inline kr_arg kr_arg_pointer(uint64_t cudeviceptr)
{
    kr_arg a = {KR_ARG_POINTER, KR_TYPE_U64, {cudeviceptr}, 0};
    return a;
}

#define KR_U8(x) kr_arg_unsigned(KR_TYPE_U8, (x))
#define KR_I8(x) kr_arg_signed(KR_TYPE_I8, (x))
#define KR_U16(x) kr_arg_unsigned(KR_TYPE_U16, (x))
#define KR_I16(x) kr_arg_signed(KR_TYPE_I16, (x))
#define KR_U32(x) kr_arg_unsigned(KR_TYPE_U32, (x))
#define KR_I32(x) kr_arg_signed(KR_TYPE_I32, (x))
#define KR_U64(x) kr_arg_unsigned(KR_TYPE_U64, (x))
#define KR_I64(x) kr_arg_signed(KR_TYPE_I64, (x))
#define KR_F32(x) kr_arg_f32(x)
#define KR_F64(x) kr_arg_f64(x)
#define KR_BUF(buffer) kr_arg_buffer((buffer), 0)
#define KR_BUF_AT(buffer, offset_bytes) kr_arg_buffer((buffer), (offset_bytes))
#define KR_PTR(cudeviceptr) kr_arg_pointer(cudeviceptr)

/* A list of arguments that lives until the end of the full expression (C++) or block (C). */
#ifdef __cplusplus
}
static inline kr_args kr_args_of(std::initializer_list<kr_arg> list)
{
    kr_args a = {list.begin(), list.size()};
    return a;
}
#define KR_ARGS(...) kr_args_of({__VA_ARGS__})
extern "C" {
#else
#define KR_ARGS(...) \
    ((kr_args){(const kr_arg[]){__VA_ARGS__}, sizeof((const kr_arg[]){__VA_ARGS__}) / sizeof(kr_arg)})
#endif

/* How a kernel is launched. A dimension of 0 in `grid` or `block` counts as 1. */
typedef struct kr_launch_config {
    unsigned grid[3];
    unsigned block[3];
    unsigned dynamic_shared_bytes;
} kr_launch_config;

#ifdef __cplusplus
}
#endif
#endif
