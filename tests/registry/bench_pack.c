/* SPDX-License-Identifier: Apache-2.0 */
/* bench_pack PACK...: what opening each takes, adding its ops to a registry, and choosing for one op after
 * another; the medians of many times. */
#include <kregistry/kregistry.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TIMES = 201 };

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static double median(double *values)
{
    qsort(values, TIMES, sizeof *values, by_value);
    return values[TIMES / 2];
}

/* Of all its ops, each for one type. */
static kr_status choose(kr_registry *registry, const kr_pack *pack, kr_error *err)
{
    const kr_machine machine = {.cc = {9, 0, 0}, .driver_version = 13000};
    kr_status status = KR_OK;
    for (size_t i = 0; i < kr_pack_get_info(pack).n_ops && !status; i++) {
        const kr_op *op = kr_pack_op(pack, i);
        kr_explanation *explanation = NULL;
        char name[200];
        snprintf(name, sizeof name, "%s%s%s", op->name, op->n_types ? "." : "",
                 op->n_types ? kr_type_name(op->types[0]) : "");
        status = kr_registry_explain(registry, name, &machine, NULL, &explanation, err);
        kr_explanation_destroy(&explanation);
    }
    return status;
}

static kr_status measure(const char *path, kr_error *err)
{
    static const kr_registry_options empty = {.struct_size = sizeof empty, .no_builtin_ops = true};
    double open_ms[TIMES], add_ms[TIMES], choose_ms[TIMES];
    kr_pack_info info = {0};
    kr_status status = KR_OK;
    for (size_t i = 0; i < TIMES && !status; i++) {
        kr_pack *pack = NULL;
        kr_registry *registry = NULL;
        double begin = now_ms();
        status = kr_pack_open(path, &pack, err);
        open_ms[i] = now_ms() - begin;
        info = kr_pack_get_info(pack);
        if (!status)
            status = kr_registry_create(NULL, &empty, &registry, err);
        begin = now_ms();
        if (!status)
            status = kr_registry_add_pack_file(registry, path, err);
        add_ms[i] = now_ms() - begin;
        begin = now_ms();
        if (!status)
            status = choose(registry, pack, err);
        choose_ms[i] = now_ms() - begin;
        kr_registry_destroy(&registry);
        kr_pack_close(&pack);
    }
    if (!status)
        printf("%s: %zu ops, %zu images, %zu bytes: open %.3f ms, add %.3f ms, choose for each op %.3f ms\n",
               path, info.n_ops, info.n_images, info.bytes, median(open_ms), median(add_ms),
               median(choose_ms));
    return status;
}

int main(int argc, char **argv)
{
    kr_error err;
    for (int i = 1; i < argc; i++)
        if (measure(argv[i], &err))
            return kr_error_print(&err, stderr);
    return 0;
}
