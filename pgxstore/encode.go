package pgxstore

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"
)

// encodePlain encodes the arguments of the statements that every batch sends, in the binary format of PostgreSQL's wire
// protocol (its send functions: array_send, int8send, int2send, byteasend, textsend). If an argument has another type,
// encodePlain returns false and changes nothing, and pgx encodes the arguments.
func (a *arena) encodePlain(types []uint32, args []any) (encodedArgs, bool) {
	if len(types) != len(args) {
		return encodedArgs{}, false
	}
	for i, arg := range args {
		if !isPlain(types[i], arg) {
			return encodedArgs{}, false
		}
	}
	first, code := len(a.values), len(a.formats)
	for _, arg := range args {
		at := len(a.bytes)
		a.appendPlain(arg)
		a.values = append(a.values, a.bytes[at:len(a.bytes):len(a.bytes)])
		a.formats = append(a.formats, pgtype.BinaryFormatCode)
	}
	return encodedArgs{values: a.values[first:len(a.values):len(a.values)], formats: a.formats[code:len(a.formats):len(a.formats)]}, true
}

func isPlain(oid uint32, arg any) bool {
	switch arg.(type) {
	case []int64:
		return oid == pgtype.Int8ArrayOID
	case []int16:
		return oid == pgtype.Int2ArrayOID
	case [][]byte:
		return oid == pgtype.ByteaArrayOID
	case string:
		return oid == pgtype.TextOID
	}
	return false
}

func (a *arena) appendPlain(arg any) {
	switch v := arg.(type) {
	case string:
		a.bytes = append(a.bytes, v...)
	case []int64:
		a.arrayHead(len(v), pgtype.Int8OID, false)
		for _, n := range v {
			a.bytes = binary.BigEndian.AppendUint32(a.bytes, 8)
			a.bytes = binary.BigEndian.AppendUint64(a.bytes, uint64(n))
		}
	case []int16:
		a.arrayHead(len(v), pgtype.Int2OID, false)
		for _, n := range v {
			a.bytes = binary.BigEndian.AppendUint32(a.bytes, 2)
			a.bytes = binary.BigEndian.AppendUint16(a.bytes, uint16(n))
		}
	case [][]byte:
		a.appendBytea(v)
	}
}

func (a *arena) appendBytea(all [][]byte) {
	nulls := false
	for _, b := range all {
		nulls = nulls || b == nil
	}
	a.arrayHead(len(all), pgtype.ByteaOID, nulls)
	for _, b := range all {
		if b == nil {
			a.bytes = binary.BigEndian.AppendUint32(a.bytes, null)
			continue
		}
		a.bytes = binary.BigEndian.AppendUint32(a.bytes, uint32(len(b)))
		a.bytes = append(a.bytes, b...)
	}
}

// null is the length of an argument that is NULL: -1.
const null = 1<<32 - 1

// arrayHead writes the header of a one-dimensional array whose first index is 1.
func (a *arena) arrayHead(n int, oid uint32, nulls bool) {
	hasNulls := uint32(0)
	if nulls {
		hasNulls = 1
	}
	for _, field := range []uint32{1, hasNulls, oid, uint32(n), 1} {
		a.bytes = binary.BigEndian.AppendUint32(a.bytes, field)
	}
}
