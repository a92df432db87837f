// Package paired compares an earlier commit, the base, with the present tree on
// a machine that is not quiet: both are measured in each round, the base before
// and after the present, so that what drifts meets both. What the base differs
// by from itself is what equal code differs by, and a difference that is not
// larger says nothing.
package paired
