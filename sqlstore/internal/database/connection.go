package database

import (
	"context"
	"net"
	"reflect"
)

// handle is what a driver's connection offers beside database/sql, without a
// round trip. What it lacks is nil.
type handle struct {
	// Status is the state of the transaction as the server told it last.
	Status func() byte
	// Closed reports whether the connection is lost; with it status is the last
	// that was told.
	Closed func() bool
	// cut closes the connection; it may be called from any goroutine, also
	// under a statement, and twice.
	cut func()
	// close ends the connection, also one that its driver would give back to a
	// pool of its own.
	close func(context.Context) error
}

// The status of a transaction that can go on, and of none. See "Message
// Formats", ReadyForQuery: https://www.postgresql.org/docs/current/protocol-message-formats.html
const (
	InTransaction = 'T'
	NoTransaction = 'I'
)

// postgresHandle looks in a driver's connection for what speaks the protocol:
// it follows the methods Conn and PgConn, as those of pgx's stdlib lead from
// its connection to the one below, and asks by interface what is there. No
// driver is imported, so the types between have no names here.
func postgresHandle(conn any) handle {
	var h handle
	for _, below := range []func(reflect.Value) reflect.Value{byConn, byPgConn, byNothing} {
		if c, ok := conn.(interface{ TxStatus() byte }); ok {
			h.Status = c.TxStatus
		}
		if c, ok := conn.(interface{ IsClosed() bool }); ok {
			h.Closed = c.IsClosed
		}
		if c, ok := conn.(interface{ Conn() net.Conn }); ok {
			if socket := c.Conn(); socket != nil {
				h.cut = func() { _ = socket.Close() }
			}
		}
		if c, ok := conn.(interface{ Close(context.Context) error }); ok && h.close == nil {
			h.close = c.Close
		}
		conn = result(conn, below)
	}
	return h
}

// The methods that lead from one connection to the one below. Each stands in its
// own call as a constant: a method that is looked for by a variable's value could
// be any, and the linker would keep all methods of the program.
func byConn(v reflect.Value) reflect.Value { return v.MethodByName("Conn") }

func byPgConn(v reflect.Value) reflect.Value { return v.MethodByName("PgConn") }

func byNothing(reflect.Value) reflect.Value { return reflect.Value{} }

// result is what a method without arguments returns, nil if there is none.
func result(of any, method func(reflect.Value) reflect.Value) any {
	if of == nil {
		return nil
	}
	m := method(reflect.ValueOf(of))
	if !m.IsValid() || m.Type().NumIn() != 0 || m.Type().NumOut() != 1 {
		return nil
	}
	v := m.Call(nil)[0]
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return v.Interface()
}
