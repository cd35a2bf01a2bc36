/*
 * joints.h - which joints of a text a known value may cross.
 *
 * Internal to the redactor. Nearly all joints of a log are line breaks that no value crosses. What
 * shows it are two strings of the view ("grams"): one ends with the first byte behind the joint,
 * one begins with the last byte in front of it. A gram is so short that each occurrence across the
 * joint has one of the two. If no pattern has either, the joint is closed. The view is made only of
 * the text between two closed joints with an open one between them. Thread rule: as patterns.h.
 */
#ifndef DF_REDACT_JOINTS_H
#define DF_REDACT_JOINTS_H

#include "common/redact/patterns.h"
#include "common/redact/unwrap.h"

enum { DF_JOINT_GRAM_MAX = 8 };

/* Zeros are an empty filter, for which every joint is closed. */
struct df_joints {
    uint64_t pairs[65536 / 64]; /* set: some pattern has these two neighbours */
    size_t gram;                /* bytes of a gram: 3..DF_JOINT_GRAM_MAX */
    uint64_t gram_mask;         /* of 8 bytes, those of a gram */
    uint64_t *bits;             /* set: some pattern has a gram with this hash */
    unsigned log2;
};

int df_joints_new(const struct df_patterns *p, struct df_joints *ret,
                  struct df_err *err) DF_MUST_CHECK;
void df_joints_free(struct df_joints *j);

/* Reads the joints of a text one after the other. */
struct df_joint_walk {
    const struct df_joints *filter;
    const char *text;
    size_t n;
    bool last;                      /* the text is the end of the stream */
    size_t at, end;                 /* the current joint; a line break with the prefix behind it */
    size_t cut;                     /* of one that is cut off: all in front of this is known */
    bool open;                      /* a pattern may cross it, or more text is needed to tell */
    char before[DF_JOINT_GRAM_MAX]; /* of the view, in front of the joint */
    size_t befores;
};

/* Goes to the next joint; false if there is none. At a joint that is cut off at the end of the
 * text, end is SIZE_MAX. */
bool df_joint_next(struct df_joint_walk *w);

#endif
