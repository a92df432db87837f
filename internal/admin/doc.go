// Package admin defines the uses of a store that are not part of processing messages: to list, retry and edit
// rows, to erase, replay, rebuild and audit. Only Semel's own stores implement these interfaces, so they can
// change with every release. For authors of other stores, package store is the contract.
package admin
