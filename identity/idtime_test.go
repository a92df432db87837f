package identity

import (
	"testing"
	"time"
)

func TestTheTimeOfAnID(t *testing.T) {
	for _, c := range []struct {
		kind IDTime
		id   string
		want string
	}{
		{UUIDv7, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "2022-02-22T19:22:22Z"}, // RFC 9562, A.6
		{UUIDv7, "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "2022-02-22T19:22:22Z"},
		{UUIDv7, "00000000-0000-7000-8000-000000000000", "1970-01-01T00:00:00Z"},
		{UUIDv7, "017f22e2-79b0-4cc3-98c4-dc0c0c07398f", ""}, // version 4
		{UUIDv7, "017f22e279b07cc398c4dc0c0c07398f", ""},
		{UUIDv7, "g17f22e2-79b0-7cc3-98c4-dc0c0c07398f", ""},
		{ULID, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "2016-07-30T23:54:10.259Z"},
		{ULID, "01arz3ndektsv4rrffq69g5fav", "2016-07-30T23:54:10.259Z"},
		{ULID, "7ZZZZZZZZZ0000000000000000", "10889-08-02T05:31:50.655Z"},
		{ULID, "8ZZZZZZZZZ0000000000000000", ""},
		{ULID, "01ARZ3NDEKTSV4RRFFQ69G5FAU", ""}, // U is no digit of a ULID
		{ULID, "01ARZ3NDEK", ""},
		{Snowflake, "1541815603606036480", "2022-06-28T16:07:40.105Z"},
		{Snowflake, "01541815603606036480", ""},
		{Snowflake, "17", ""},
		{Snowflake, "4194303", ""},
		{Snowflake, "4194304", "2010-11-04T01:42:54.658Z"},
		{Snowflake, "-1541815603606036480", ""},
		{Snowflake, "99999999999999999999", ""},
		{NoIDTime, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", ""},
	} {
		at, ok := c.kind.Of(c.id)
		if got := at.UTC().Format(time.RFC3339Nano); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%v of %q: %s, %t, want %q", c.kind, c.id, got, ok, c.want)
		}
	}
}

func FuzzTheTimeOfAnID(f *testing.F) {
	f.Add("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
	f.Add("01ARZ3NDEKTSV4RRFFQ69G5FAV")
	f.Fuzz(func(t *testing.T, id string) {
		for kind := NoIDTime; kind <= Snowflake; kind++ {
			if at, ok := kind.Of(id); ok && at.UnixMilli() < 0 {
				t.Errorf("%v of %q is %v", kind, id, at)
			}
		}
	})
}
