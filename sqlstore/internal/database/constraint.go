package database

import (
	"reflect"
	"strings"
)

// Violates reports whether err says that this unique constraint refused a row; see sqlstore.Violates.
func Violates(err error, constraint string) bool {
	err = readable(err)
	switch SQLState(err) {
	case stateUnique, stateExclusion:
		return constraint != "" && constraintOf(err) == constraint
	}
	code, ok := methodCode(err)
	if !ok {
		return false
	}
	switch code {
	case sqliteConstraintUnique, sqliteConstraintPrimaryKey, sqliteConstraintRowID:
		return columnsOf(err.Error()) == columnsOf(": "+constraint)
	default:
		return false
	}
}

// constraintOf is the constraint that an error names.
func constraintOf(err error) string { return fieldOf(err, "ConstraintName", "Constraint") }

// fieldOf reads the first of these fields that a server's error has, of a type
// that only the driver has a name for. A type that wraps a nil of the driver's
// has none.
func fieldOf(err error, names ...string) string {
	by, _ := serverError(err)
	v := reflect.Indirect(reflect.ValueOf(by))
	if v.Kind() != reflect.Struct {
		return ""
	}
	for _, name := range names {
		if f := fieldNamed(v, name); f.Kind() == reflect.String {
			return f.String()
		}
	}
	return ""
}

// fieldNamed is a field of a structure or of what it embeds, the zero Value if
// there is none.
func fieldNamed(v reflect.Value, name string) reflect.Value {
	field, ok := v.Type().FieldByName(name)
	if !ok {
		return reflect.Value{}
	}
	f, err := v.FieldByIndexErr(field.Index)
	if err != nil {
		return reflect.Value{}
	}
	return f
}

// columnsOf is what stands after the last colon, without the code that some
// drivers append, in one spelling.
func columnsOf(text string) string {
	columns := text[strings.LastIndex(text, ": ")+1:]
	if at := strings.LastIndex(columns, " ("); at > 0 {
		columns = columns[:at]
	}
	parts := strings.Split(strings.TrimPrefix(columns, ":"), ",")
	for i, p := range parts {
		parts[i] = strings.ToLower(strings.TrimSpace(p))
	}
	return strings.Join(parts, ",")
}
