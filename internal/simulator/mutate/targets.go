package main

import (
	"github.com/semel-go/semel/internal/simulator/mutation"
	"github.com/semel-go/semel/internal/simulator/plan"
)

// targets returns the packages whose rules make effects happen once, with the tests that must find mistakes in
// these packages.
func targets() []mutation.Target {
	memstore := mutation.Test{Package: "storetest", Run: "^TestMemstoreKeepsTheLaws$"}
	of := func(pkg string) mutation.Test { return mutation.Test{Package: pkg, Run: "."} }
	return []mutation.Target{
		{Name: "machine", Files: []string{"internal/machine/*.go"}, Tests: []mutation.Test{of("internal/machine")}, Simulated: true},
		{Name: "calls", Files: []string{"internal/calls/*.go"}, Tests: []mutation.Test{of("internal/calls"), memstore}, Simulated: true, Mode: plan.Calls},
		{Name: "keys", Files: []string{"internal/keyclaim/*.go", "memstore/keys.go", "store/keys.go"},
			Tests: []mutation.Test{of("internal/keyclaim"), of("memstore"), of("httpkey"), memstore}},
		{Name: "lines", Files: []string{"internal/lines/*.go", "memstore/lines.go"}, Tests: []mutation.Test{of("internal/lines"), of("memstore"), memstore}},
		{Name: "streams", Files: []string{"internal/streams/*.go", "memstore/streams.go"}, Tests: []mutation.Test{of("internal/streams"), memstore}, Simulated: true},
		{Name: "claims", Files: []string{"memstore/leases.go", "store/lease.go", "internal/admin/twins.go", "internal/sqlform/twins.go"},
			Tests: []mutation.Test{of("memstore"), of("store"), of("internal/admin"), of("internal/sqlform"), memstore}, Simulated: true, Mode: plan.Twins},
		{Name: "retention", Files: []string{"memstore/retention.go", "store/retention.go", "internal/sqlform/retention.go", "internal/sqlform/ahead.go"},
			Tests: []mutation.Test{of("memstore"), of("store"), of("internal/admin"), of("internal/sqlform"), memstore}, Simulated: true},
	}
}
