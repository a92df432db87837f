// Package must ends a test at the first error in the preparation of the test.
package must

import "testing"

// OK ends the test if err is not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a function that returns the value, and ends the test if err is not nil:
//
//	dsn := must.Get(open())(t)
func Get[V any](value V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		OK(t, err)
		return value
	}
}
