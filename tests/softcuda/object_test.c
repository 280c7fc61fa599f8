/* SPDX-License-Identifier: Apache-2.0 */
/* How long an object lasts, step by step; thread_test has threads do it. */
#include <check.h>
#include <stdlib.h>

#include "softcuda/driver/driver.h"

typedef struct thing {
    sc_object object;
    void *holds; /* released when it is finished */
} thing;

static unsigned n_ended, n_finished;

static void end(sc_object *object)
{
    (void)object;
    n_ended++;
}

static void finish(sc_object *object)
{
    n_finished++;
    sc_release(((thing *)object)->holds);
    free(object);
}

static thing *make(sc_context *context)
{
    thing *made = sc_object_create(sizeof *made, SC_EVENT, context, finish);
    if (made)
        made->object.end = end;
    return made;
}

static thing *publish(void)
{
    thing *made = make(NULL);
    ck_assert_ptr_nonnull(made);
    ck_assert(sc_object_publish(made, (uintptr_t)made));
    return made;
}

static void call(void)
{
    sc_call_end(sc_call_begin());
}

START_TEST(what_was_found_lasts_until_the_call_ends)
{
    thing *made = publish();
    const unsigned begun = sc_call_begin();
    ck_assert_ptr_eq(sc_object_find(SC_EVENT, (uintptr_t)made), made);
    ck_assert_ptr_null(sc_object_find(SC_STREAM, (uintptr_t)made));
    sc_object_drop(made);
    ck_assert_uint_eq(n_ended, 1);
    ck_assert_ptr_null(sc_object_find(SC_EVENT, (uintptr_t)made));
    for (int i = 0; i < 5; i++)
        call();
    ck_assert_uint_eq(n_finished, 0);
    sc_call_end(begun);
    ck_assert_uint_eq(n_finished, 1);
}
END_TEST

/* A call that began after the end, and so cannot have found it, holds nothing up for good. */
START_TEST(later_calls_do_not_matter)
{
    const unsigned first = sc_call_begin();
    sc_object_drop(publish());
    call(); /* the epoch ends, as no call of one before is in flight */
    const unsigned second = sc_call_begin();
    ck_assert_uint_ne(first, second);
    ck_assert_uint_eq(n_finished, 0);
    sc_call_end(first);
    ck_assert_uint_eq(n_finished, 1);
    sc_call_end(second);
}
END_TEST

START_TEST(what_has_ended_cannot_be_retained)
{
    thing *made = publish();
    const unsigned begun = sc_call_begin();
    ck_assert_ptr_eq(sc_retain(made), made);
    sc_object_drop(made);
    ck_assert(!sc_has_ended(made) && !n_ended);
    sc_release(made);
    ck_assert(sc_has_ended(made) && n_ended == 1);
    ck_assert_ptr_null(sc_retain(made));
    ck_assert(sc_has_ended(made));
    sc_call_end(begun);
    ck_assert_uint_eq(n_finished, 1);
}
END_TEST

START_TEST(one_alone_takes_it_out)
{
    thing *made = publish();
    const unsigned begun = sc_call_begin();
    ck_assert(sc_object_retract(made));
    ck_assert(!sc_object_retract(made));
    sc_object_drop(made);
    ck_assert_uint_eq(n_ended, 0);
    sc_release(made);
    sc_call_end(begun);
    ck_assert_uint_eq(n_finished, 1);
}
END_TEST

START_TEST(what_it_holds_ends_with_it)
{
    thing *made = publish();
    made->holds = publish();
    sc_object_retract(made->holds);
    sc_object_drop(made);
    ck_assert_uint_eq(n_ended, 1);
    call();
    ck_assert_uint_eq(n_ended, 2);
    ck_assert_uint_eq(n_finished, 2);
}
END_TEST

static void finish_context(sc_object *object)
{
    free(object);
}

START_TEST(nothing_is_made_in_a_context_that_ends)
{
    sc_context *context = sc_object_create(sizeof *context, SC_CONTEXT, NULL, finish_context);
    thing *before = make(context), *late = make(context);
    ck_assert(sc_object_publish(before, (uintptr_t)before));
    context->is_ending = true;
    ck_assert(!sc_object_publish(late, (uintptr_t)late));
    ck_assert_ptr_eq(sc_object_of(context, SC_EVENT), before);
    sc_object_discard(late);
    sc_object_drop(before);
    const unsigned begun = sc_call_begin();
    sc_release(context); /* `before` holds it until it is finished */
    ck_assert(!sc_has_ended(context));
    sc_call_end(begun);
    ck_assert_uint_eq(n_finished, 1);
    call();
}
END_TEST

START_TEST(a_context_that_has_ended_has_no_more)
{
    sc_context *context = sc_object_create(sizeof *context, SC_CONTEXT, NULL, finish_context);
    const unsigned begun = sc_call_begin();
    sc_release(context);
    ck_assert_ptr_null(make(context));
    sc_call_end(begun);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("objects");
    TCase *tests = tcase_create("objects");
    tcase_add_test(tests, what_was_found_lasts_until_the_call_ends);
    tcase_add_test(tests, later_calls_do_not_matter);
    tcase_add_test(tests, what_has_ended_cannot_be_retained);
    tcase_add_test(tests, one_alone_takes_it_out);
    tcase_add_test(tests, what_it_holds_ends_with_it);
    tcase_add_test(tests, nothing_is_made_in_a_context_that_ends);
    tcase_add_test(tests, a_context_that_has_ended_has_no_more);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
