// Package mute is a driver for tests that opens transactions and rejects statements.
package mute

import (
	"context"
	"database/sql/driver"
	"errors"
)

// Conn is a driver that opens transactions and rejects statements. As with most drivers, a Conn does not show whether
// it is in a transaction.
type Conn struct{}

func (Conn) Connect(context.Context) (driver.Conn, error)                 { return Conn{}, nil }
func (Conn) Driver() driver.Driver                                        { return nil }
func (Conn) Prepare(string) (driver.Stmt, error)                          { return nil, errors.New("no statements here") }
func (Conn) Close() error                                                 { return nil }
func (Conn) Begin() (driver.Tx, error)                                    { return Conn{}, nil }
func (Conn) Commit() error                                                { return nil }
func (Conn) Rollback() error                                              { return nil }
func (Conn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return Conn{}, nil }
