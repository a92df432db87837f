// Package admin defines what operators and semel itself do with a store beyond processing messages:
// list and retry rows, edit, erase, replay, rebuild, audit. Only Semel's own stores implement these
// interfaces, so they can change with every release; package store is the contract for other authors.
package admin
