// Package enum names the values of closed sets, for logs, tests and policies.
package enum

import "strconv"

// Name is the name of a value, or the type with its number if it has none.
func Name[N ~uint8](names []string, value N, kind string) string {
	if int(value) < len(names) && names[value] != "" {
		return names[value]
	}
	return kind + "(" + strconv.Itoa(int(value)) + ")"
}
