// Package output writes tables that fit the terminal, and formats their cells.
package output

import (
	"io"
	"slices"
	"strconv"

	"github.com/semel-go/semel/cmd/semel/internal/terminal"
)

// Column is a column of a table. Each T is a row of the table.
type Column[T any] struct {
	terminal.Column
	show, varied bool
	text         func(T) string
}

// Text returns a column that is never cut.
func Text[T any](title string, text func(T) string) Column[T] {
	return Column[T]{Column: terminal.Column{Title: title}, show: true, text: text}
}

// Flexible returns a column that is cut if the table is too wide.
func Flexible[T any](title string, text func(T) string) Column[T] {
	return Column[T]{Column: terminal.Column{Title: title, Flexible: true}, show: true, text: text}
}

// Number returns a column of numbers, which is never cut.
func Number[T any, N int | int64](title string, number func(T) N) Column[T] {
	return Text(title, func(t T) string { return strconv.FormatInt(int64(number(t)), 10) })
}

// Fixed returns a function that returns the given columns for all rows.
func Fixed[T any](all ...Column[T]) func([]T, bool) []Column[T] {
	return func([]T, bool) []Column[T] { return all }
}

// If returns the column, which is shown only if show is true.
func (c Column[T]) If(show bool) Column[T] {
	c.show = show
	return c
}

// IfVaried returns the column, which is shown only if its cells differ.
func (c Column[T]) IfVaried() Column[T] { return c.If(false).OrVaried() }

// OrVaried returns the column, which is also shown if its cells differ.
func (c Column[T]) OrVaried() Column[T] {
	c.varied = true
	return c
}

func (c Column[T]) shown(things []T) bool {
	return c.show || c.varied && slices.ContainsFunc(things, func(t T) bool { return c.text(t) != c.text(things[0]) })
}

// Table prints a table with one row per thing and at most the given width.
func Table[T any](w io.Writer, things []T, all []Column[T], columns int) error {
	var table terminal.Table
	all = slices.DeleteFunc(all, func(c Column[T]) bool { return !c.shown(things) })
	for _, c := range all {
		table.Columns = append(table.Columns, c.Column)
	}
	for _, thing := range things {
		var cells []string
		for _, c := range all {
			cells = append(cells, c.text(thing))
		}
		table.Add(cells...)
	}
	return table.Write(w, columns)
}
