// Package storetest is the conformance suite of stores. Every case states one
// law in a sentence and prints it when the store breaks it. Effects are
// counted, not deliveries.
//
// A store's own test hands over a Harness:
//
//	storetest.Run(t, storetest.Harness[*sql.Tx]{Open: open, Can: storetest.Abilities{Inbox: true}})
//
// The least a store must do is store.TxStore. What it declares beyond that is
// tested; what it does not declare, it must not have.
package storetest
