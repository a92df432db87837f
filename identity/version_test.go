package identity_test

import (
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/versions"
)

func TestVersionsAreFound(t *testing.T) {
	by := identity.Stream("body:/order").At("body:/version")
	for name, c := range map[string]struct {
		by     *identity.Versions
		body   string
		stream string
		number int64
		says   string
	}{
		"B4_a_number":                        {by, `{"order":"a","version":7}`, "a", 7, ""},
		"B4_a_number_however_it_is_written":  {by, `{"order":"a","version":7.0e0}`, "a", 7, ""},
		"B4_digits_as_text":                  {by, `{"order":"a","version":"7"}`, "a", 7, ""},
		"B4_the_largest":                     {by, `{"order":"a","version":9223372036854775806}`, "a", versions.Max, ""},
		"B4_a_number_as_the_streams_name":    {by, `{"order":12,"version":1}`, "12", 1, ""},
		"B4_a_stream_of_several_values":      {identity.Stream("body:/shop", "body:/order").At("body:/version"), `{"shop":"x","order":"ab","version":1}`, "1:x,2:ab,", 1, ""},
		"B4_trap_T57_missing":                {by, `{"order":"a"}`, "", 0, "is missing"},
		"B4_trap_T57_null":                   {by, `{"order":"a","version":null}`, "", 0, "null"},
		"B4_trap_T57_zero":                   {by, `{"order":"a","version":0}`, "", 0, "the first is 1"},
		"B4_negative":                        {by, `{"order":"a","version":-3}`, "", 0, "the first is 1"},
		"B4_a_fraction":                      {by, `{"order":"a","version":1.5}`, "", 0, "no whole number"},
		"B4_one_that_has_no_next":            {by, `{"order":"a","version":9223372036854775807}`, "", 0, "no whole number from 1 to 9223372036854775806"},
		"B4_too_large":                       {by, `{"order":"a","version":9223372036854775808}`, "", 0, "no whole number"},
		"B4_digits_with_a_zero_before_them":  {by, `{"order":"a","version":"07"}`, "", 0, "no whole number"},
		"B4_digits_with_a_blank_before_them": {by, `{"order":"a","version":" 7"}`, "", 0, "no whole number"},
		"B4_true":                            {by, `{"order":"a","version":true}`, "", 0, "boolean"},
		"B4_a_stream_without_a_name":         {by, `{"order":"","version":1}`, "", 0, "its stream"},
		"B4_a_stream_that_is_missing":        {by, `{"version":1}`, "", 0, "its stream"},
		"B4_a_name_that_is_too_long":         {by, `{"order":"` + strings.Repeat("x", versions.MaxStream+1) + `","version":1}`, "", 0, "must have 1 to 512"},
		"B4_a_body_that_is_not_JSON":         {by, `order 7`, "", 0, "not strict JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			stream, number, err := c.by.Version(&semel.Message{Body: []byte(c.body)})
			if c.says == "" && (err != nil || stream != c.stream || number != c.number) {
				t.Errorf("%q at %d, %v", stream, number, err)
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%q at %d, %v; want %q", stream, number, err, c.says)
			}
		})
	}
}

func TestInvalidVersions(t *testing.T) {
	for name, c := range map[string]struct {
		by   *identity.Versions
		says string
	}{
		"B4_trap_T62_a_brokers_offset":        {identity.Stream("body:/order").At("offset"), "a broker's offset has gaps"},
		"B4_trap_T58_a_partition_as_a_stream": {identity.Stream("partition").At("body:/version"), "cannot name a stream"},
		"B4_a_time":                           {identity.Stream("body:/order").At("time"), "after a time nobody knows the next"},
		"B4_a_constant":                       {identity.Stream("body:/order").At("const:1"), "cannot be a version"},
		"B4_a_version_that_may_be_missing":    {identity.Stream("body:/order").At("body:/version?"), "question mark"},
		"B4_a_stream_that_may_be_missing":     {identity.Stream("body:/order?").At("body:/version"), "cannot name a stream"},
		"B4_a_stream_without_a_version":       {identity.Stream("body:/order"), "needs the selector of the version"},
		"B4_a_stream_of_nothing":              {identity.Stream().At("body:/version"), "at least one selector"},
		"B4_selectors_that_are_none":          {identity.Stream("boddy:/order").At("heder:x"), "boddy"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.by.Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %q", err, c.says)
			}
		})
	}
	if err := identity.Stream("body:/order").At("header:version").Validate(); err != nil {
		t.Error(err)
	}
}
