// Package trace gives the events and actions of a simulated run their names in histories and in the coverage.
package trace
