/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_IMAGE_H
#define KREGISTRY_IMAGE_H

#include <stdbool.h>

#include <kregistry/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * kr_inspection: which code images a file holds, and what they say of themselves. Needs no driver, no device
 * and no toolkit. It knows PTX, cubins (of CUDA 11 to 13), fatbins, several fatbins one after another,
 * LTO-IR, and what holds fatbins: little-endian ELF programs, shared libraries and objects of any machine,
 * with or without section headers, and archives of such objects.
 *
 * Nothing that the bytes say is trusted: KR_CORRUPT names the offset and what was expected there. Parts of a
 * fatbin that are of a kind nobody here knows are images too, of the kind KR_IMAGE_OTHER.
 *
 * Threads: every function may be called from many threads at once, also with the same inspection.
 */
typedef struct kr_inspection kr_inspection;

/* Finds the images; nothing is unpacked. The bytes are not copied: they must outlive the inspection.
 * `name` is for messages, or NULL. */
KR_API kr_status kr_inspection_create(const void *bytes, size_t n_bytes, const char *name,
                                      kr_inspection **ret_inspection, kr_error *err);
/* The same of a regular file, which is mapped, not read: who cuts it short meanwhile ends the process
 * (SIGBUS). */
KR_API kr_status kr_inspection_open(const char *path, kr_inspection **ret_inspection, kr_error *err);
/* Accepts NULL and a pointer to NULL; nulls the handle. Contents that were read remain. */
KR_API void kr_inspection_destroy(kr_inspection **inspection);

/* "ptx", "cubin", "fatbin", "ltoir", "elf", "archive"; "pack": kr_pack_open (pack.h) has its images, there
 * are none here. */
KR_API const char *kr_inspection_kind(const kr_inspection *inspection);

typedef enum kr_compression { KR_STORED, KR_LZ4, KR_ZSTD } kr_compression;

KR_API const char *kr_compression_name(kr_compression compression); /* "none", "lz4", "zstd" */

/* One image, as it and the fatbin it lies in say. Texts are "" where there is none, and live as long as the
 * inspection. */
typedef struct kr_image_info {
    kr_image_kind kind;
    kr_cc arch;          /* major 0: not known, as of LTO-IR outside of a fatbin */
    int isa;             /* PTX: 87 for 8.7; else 0 */
    size_t offset;       /* in the file, of its first byte */
    size_t stored_bytes; /* there */
    size_t bytes;        /* unpacked */
    kr_compression compression;
    const char *member;   /* of an archive: the object that holds it */
    const char *section;  /* of an ELF file: the section that holds it */
    const char *name;     /* that the compiler gave it */
    const char *options;  /* for the driver's compiler or linker: "-maxrregcount=32" */
    const char *flags;    /* of the fatbin's entry, by name: "64bit debug linux zstd"; unknown ones as hex */
    unsigned fatbin_kind; /* the number that a fatbin has for its kind; 0: not in a fatbin */
} kr_image_info;

KR_API size_t kr_inspection_n_images(const kr_inspection *inspection);
/* In the file's order. NULL past the end. Lives as long as the inspection. */
KR_API const kr_image_info *kr_inspection_image(const kr_inspection *inspection, size_t index);

typedef struct kr_image_param {
    size_t offset, bytes; /* in the parameter block */
} kr_image_param;

/* A kernel. Of PTX, whose registers, shared and local memory, barriers and code its compiler decides, these
 * are 0. */
typedef struct kr_image_kernel {
    const char *name;
    size_t n_params;
    const kr_image_param *params; /* in order */
    size_t param_bytes;           /* of all */
    int registers;                /* a thread; 0: the image does not say */
    int max_registers;            /* the limit it was compiled under; 0: none */
    int barriers;
    size_t shared_bytes; /* a block, static, without what the system reserves */
    size_t local_bytes;  /* a thread */
    size_t code_bytes;
    unsigned max_threads[3];      /* .maxntid, zeros where not given */
    unsigned required_threads[3]; /* .reqntid, the same */
    unsigned cluster[3];          /* .reqnctapercluster, the same */
    unsigned max_cluster;         /* .maxclusterrank; 0: not given */
} kr_image_kernel;

/* A __device__ or __constant__ variable. */
typedef struct kr_image_variable {
    const char *name;
    size_t bytes; /* 0: defined elsewhere, with a size that is not known here */
    bool is_const;
} kr_image_variable;

/* What an image holds. Everything in it is freed by kr_image_contents_destroy. */
typedef struct kr_image_contents {
    size_t n_kernels;
    const kr_image_kernel *kernels; /* none of LTO-IR, whose contents only NVIDIA's linker can read */
    size_t n_variables;
    const kr_image_variable *variables;
    int abi;             /* cubin: 7 (CUDA up to 12) or 8; else 0 */
    int toolkit;         /* cubin: 13000 for one made by CUDA 13.0; 0: not known */
    bool is_relocatable; /* cubin: for a linker; a driver loads it, without the kernels that need another */
    int address_bits;    /* PTX: 64, 32; else 0 */
    int min_isa;         /* PTX: the lowest .version that has all it uses; 0: not known */
    kr_cc min_target;    /* PTX: the same of .target; cubin: its arch; major 0: not known */
    int min_driver; /* the same of the driver, as the CUDA version that it came with: 12000; 0: not known */
    int driver;     /* the lowest that takes the image as it is: PTX by its .version */
} kr_image_contents;

/* Unpacks and reads one image; its unpacked bytes are freed before the call returns. KR_NOT_FOUND past the
 * last one. KR_CORRUPT: it is damaged; offsets in the message are those of the unpacked image, and the chain
 * says where in the file that lies. */
KR_API kr_status kr_inspection_read(const kr_inspection *inspection, size_t index,
                                    kr_image_contents **ret_contents, kr_error *err);
/* Accepts NULL and a pointer to NULL; nulls the handle. */
KR_API void kr_image_contents_destroy(kr_image_contents **contents);

#ifdef __cplusplus
}
#endif
#endif
