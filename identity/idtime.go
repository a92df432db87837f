package identity

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/enum"
)

// IDTime is a format of ids that contain the time at which they were created.
type IDTime uint8

// The formats.
const (
	// NoIDTime means that ids contain no usable time.
	NoIDTime IDTime = iota
	// UUIDv7 means that the first 48 bits are milliseconds since 1970 (RFC 9562, section 5.7).
	UUIDv7
	// ULID means that the first ten characters, in Crockford's base 32, are milliseconds since 1970.
	ULID
	// Snowflake means a decimal number whose bits above the lowest 22 are milliseconds since
	// 2010-11-04T01:42:54.657Z.
	Snowflake
)

// String returns the name of the format in a policy file.
func (k IDTime) String() string {
	return enum.Name([]string{NoIDTime: "none", UUIDv7: "uuidv7", ULID: "ulid", Snowflake: "snowflake"}, k, "IDTime")
}

// Of returns the time that an id contains. If the id does not have this format, Of returns false.
func (k IDTime) Of(id string) (time.Time, bool) {
	switch k {
	case UUIDv7:
		return uuidTime(id)
	case ULID:
		return ulidTime(id)
	case Snowflake:
		return snowflakeTime(id)
	}
	return time.Time{}, false
}

func uuidTime(id string) (time.Time, bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[14] != '7' || id[18] != '-' || id[23] != '-' {
		return time.Time{}, false
	}
	var b [8]byte
	if _, err := hex.Decode(b[2:], []byte(id[:8]+id[9:13])); err != nil {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[:]))), true
}

// crockford are the digits of a ULID (github.com/ulid/spec).
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func ulidTime(id string) (time.Time, bool) {
	if len(id) != 26 || id[0] > '7' {
		return time.Time{}, false
	}
	var n int64
	for i, c := range strings.ToUpper(id) {
		digit := strings.IndexRune(crockford, c)
		if digit < 0 {
			return time.Time{}, false
		}
		if i < 10 {
			n = n<<5 | int64(digit)
		}
	}
	return time.UnixMilli(n), true
}

// snowflakeEpoch is the start of Snowflake times in milliseconds since 1970
// (github.com/twitter-archive/snowflake).
const snowflakeEpoch = 1288834974657

func snowflakeTime(id string) (time.Time, bool) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 1<<22 || id != strconv.FormatInt(n, 10) {
		return time.Time{}, false
	}
	return time.UnixMilli(n>>22 + snowflakeEpoch), true
}
