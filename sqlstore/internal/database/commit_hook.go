package database

import (
	"database/sql"
	"reflect"
)

// hookCommits keeps everything but the store's own commit from committing on a
// connection of SQLite: whatever a handler's own COMMIT holds is taken back, and
// so is a statement that it sends after its own ROLLBACK, when each statement
// commits by itself. It uses the commit hook of the connection, of which there
// is one: https://www.sqlite.org/c3ref/commit_hook.html
//
// No driver is imported: the method is looked for by its name, and its
// parameter is a function that returns a number, of which anything but zero
// refuses. It reports false if the driver has no such method.
func hookCommits(conn any, open func() bool) bool {
	hook, of := commitHook(conn)
	if of == nil {
		return false
	}
	refuse := reflect.MakeFunc(of, func([]reflect.Value) []reflect.Value {
		answer := reflect.New(of.Out(0)).Elem()
		if !open() {
			answer.SetInt(1)
		}
		return []reflect.Value{answer}
	})
	hook.Call([]reflect.Value{refuse})
	return true
}

// unhookCommits takes the hook away.
func unhookCommits(conn any) {
	if hook, of := commitHook(conn); of != nil {
		hook.Call([]reflect.Value{reflect.Zero(of)})
	}
}

// commitHook is the method that sets the hook and the type of what it takes,
// which is nil if there is none.
func commitHook(conn any) (hook reflect.Value, of reflect.Type) {
	if conn == nil {
		return reflect.Value{}, nil
	}
	hook = reflect.ValueOf(conn).MethodByName("RegisterCommitHook")
	if !hook.IsValid() || hook.Type().NumIn() != 1 || hook.Type().NumOut() != 0 {
		return reflect.Value{}, nil
	}
	of = hook.Type().In(0)
	if of.Kind() != reflect.Func || of.NumIn() != 0 || of.NumOut() != 1 || !reflect.Zero(of.Out(0)).CanInt() {
		return reflect.Value{}, nil
	}
	return hook, of
}

// canHookCommits reports whether the driver of a connection has what that needs.
func canHookCommits(conn *sql.Conn) (can bool) {
	_ = conn.Raw(func(c any) error {
		_, of := commitHook(c)
		can = of != nil
		return nil
	})
	return can
}
