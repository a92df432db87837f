package workload

import (
	"fmt"
	"slices"
	"testing"
)

// Outside is a testing.TB for programs that are no tests, with the methods that package services needs. A failure
// panics. End runs the cleanup functions.
type Outside struct {
	testing.TB
	cleanups []func()
}

// End runs the cleanup functions, the last registered function first.
func (o *Outside) End() {
	for _, clean := range slices.Backward(o.cleanups) {
		clean()
	}
	o.cleanups = nil
}

// Helper implements testing.TB.
func (o *Outside) Helper() {}

// Cleanup implements testing.TB.
func (o *Outside) Cleanup(f func()) { o.cleanups = append(o.cleanups, f) }

// Fatal implements testing.TB.
func (o *Outside) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf implements testing.TB.
func (o *Outside) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Error implements testing.TB.
func (o *Outside) Error(args ...any) { panic(fmt.Sprint(args...)) }

// Errorf implements testing.TB.
func (o *Outside) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
