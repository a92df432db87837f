package pgxstore

import (
	"bytes"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

func TestPlainArgumentsAreEncodedLikeTheDriver(t *testing.T) {
	types := []uint32{pgtype.Int8ArrayOID, pgtype.ByteaArrayOID, pgtype.Int2ArrayOID, pgtype.TextOID}
	for name, args := range map[string][]any{
		"values":    {[]int64{1, -2, 1 << 40}, [][]byte{[]byte("a"), {0, 255}, bytes.Repeat([]byte("x"), 3000)}, []int16{7, -7}, "idle"},
		"nulls":     {[]int64{0}, [][]byte{nil, {}, nil}, []int16{0}, ""},
		"all nulls": {[]int64{}, [][]byte{nil}, []int16{}, "x"},
		"nothing":   {[]int64{}, [][]byte{}, []int16{}, "x"},
	} {
		var a arena
		got, ok := a.encodePlain(types, args)
		var builder pgx.ExtendedQueryBuilder
		if err := builder.Build(pgtype.NewMap(), &pgconn.StatementDescription{ParamOIDs: types}, args); err != nil {
			t.Fatal(err)
		}
		if !ok || !slices.EqualFunc(got.values, builder.ParamValues, bytes.Equal) {
			t.Errorf("%s: %v\n%x; the driver makes\n%x", name, ok, got.values, builder.ParamValues)
		}
		for _, f := range got.formats {
			if f != pgtype.BinaryFormatCode {
				t.Errorf("%s: the formats are %v", name, got.formats)
			}
		}
	}
}

func TestOtherArgumentsAreLeftToTheDriver(t *testing.T) {
	for name, c := range map[string]struct {
		types []uint32
		args  []any
	}{
		"another type":     {[]uint32{pgtype.Int4ArrayOID}, []any{[]int64{1}}},
		"a Go type":        {[]uint32{pgtype.Int8OID}, []any{1}},
		"a null":           {[]uint32{pgtype.TextOID}, []any{nil}},
		"too few":          {[]uint32{pgtype.TextOID, pgtype.TextOID}, []any{"a"}},
		"one of several":   {[]uint32{pgtype.TextOID, pgtype.TimestamptzOID}, []any{"a", "b"}},
		"json in a string": {[]uint32{pgtype.JSONBOID}, []any{"{}"}},
	} {
		var a arena
		if _, ok := a.encodePlain(c.types, c.args); ok || len(a.values) > 0 || len(a.bytes) > 0 {
			t.Errorf("%s: it is taken for plain, or left something", name)
		}
	}
}

func TestAnArenaReusesItsMemory(t *testing.T) {
	var a arena
	first, _ := a.encodePlain([]uint32{pgtype.TextOID}, []any{"first"})
	if second, _ := a.reset().encodePlain([]uint32{pgtype.TextOID}, []any{"other"}); string(first.values[0]) != "other" || string(second.values[0]) != "other" {
		t.Errorf("the memory is not used again: %q, %q", first.values, second.values)
	}
	a.bytes = make([]byte, mostKept+1)
	if a.reset(); cap(a.bytes) > 0 {
		t.Error("more than the most is kept")
	}
}
