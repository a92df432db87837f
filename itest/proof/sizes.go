package proof

import (
	"flag"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// Sizes declares a flag for each field of a struct that has the tag `flag`. The tag is the usage text. The field
// MostKills becomes the flag -most-kills, unless the tag `name` gives another name. The default of the flag is the
// value of the field.
func Sizes(flags *flag.FlagSet, proof any) {
	v := reflect.ValueOf(proof).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		usage, is := field.Tag.Lookup("flag")
		if !is {
			continue
		}
		name := flagName(field.Name)
		if own := field.Tag.Get("name"); own != "" {
			name = own
		}
		switch to := v.Field(i).Addr().Interface().(type) {
		case *int:
			flags.IntVar(to, name, *to, usage)
		case *int64:
			flags.Int64Var(to, name, *to, usage)
		case *bool:
			flags.BoolVar(to, name, *to, usage)
		case *string:
			flags.StringVar(to, name, *to, usage)
		case *time.Duration:
			flags.DurationVar(to, name, *to, usage)
		default:
			panic(fmt.Sprintf("a flag cannot set %T", to))
		}
	}
}

func flagName(field string) string {
	var name strings.Builder
	for i, r := range field {
		if i > 0 && unicode.IsUpper(r) {
			name.WriteByte('-')
		}
		name.WriteRune(unicode.ToLower(r))
	}
	return name.String()
}
