// Package enum returns the names of constants, for logs, tests and policies.
package enum

import "strconv"

// Name returns the name of a value. If the value has no name, Name returns the type and the number.
func Name[N ~uint8 | ~int64](names []string, value N, kind string) string {
	if value >= 0 && uint64(value) < uint64(len(names)) && names[value] != "" {
		return names[value]
	}
	return kind + "(" + strconv.FormatInt(int64(value), 10) + ")"
}
