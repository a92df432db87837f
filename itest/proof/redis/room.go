package redis

import (
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room offers the measurement.
func Room() proof.Room {
	return &proof.Form[Rates, RatesLedger]{Title: "rates", Within: time.Hour, Sizes: Rates{Rounds: 11, Workers: 64}, Choose: func(*Rates, proof.Choice) {}, Prove: Rates.Run}
}
