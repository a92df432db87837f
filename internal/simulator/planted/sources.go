package planted

// ofSources are faults by which many sources, or much that comes, keep work from being done.
func ofSources() []Fault {
	return []Fault{
		inPackage("what was claimed waits behind all that was fetched before it", "D3", "internal/machine/batch.go",
			"claims := w.claims == (w.before != 0)", "claims := false",
			"./internal/machine", "TestClaimsAndDeliveriesTakeTurns/D3_what_was_claimed_waits_for_one_flight_of_what_was_fetched_before_it"),
		inShell("each new source of a batch is interned by itself", "law 11", "consumer/flight.go",
			"if err := p.engine.scopes.know(ctx, p.scopes); err != nil {", "if err := p.engine.scopes.know(ctx, nil); err != nil {",
			"TestScopesOfManySources/law_11_a_batch_asks_once_for_all_of_its_new_sources"),
	}
}
