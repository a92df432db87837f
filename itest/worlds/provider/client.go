package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Client speaks to a provider at URL.
type Client struct {
	URL  string
	HTTP *http.Client
}

// StatusError is an answer that is no receipt.
type StatusError struct {
	Status int
	// After is what Retry-After says.
	After time.Duration
}

// Error implements error.
func (e *StatusError) Error() string { return fmt.Sprintf("the provider answers %d", e.Status) }

// Charge asks for money. A *StatusError is what the provider answered; of any other error
// nobody knows what became of the call, unless it never left.
func (c Client) Charge(ctx context.Context, key string, p Payment) (Receipt, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return Receipt{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/charges", bytes.NewReader(body))
	if err != nil {
		return Receipt{}, err
	}
	request.GetBody = nil // a connection that breaks is told, and nothing is sent again unseen
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	var receipt Receipt
	err = c.do(request, &receipt)
	if err == nil && receipt.Reference != p.Reference {
		err = fmt.Errorf("the receipt is of %q, not of %q", receipt.Reference, p.Reference)
	}
	return receipt, err
}

// Ask asks what became of a payment.
func (c Client) Ask(ctx context.Context, reference string) (i Inquiry, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/charges?reference="+url.QueryEscape(reference), nil)
	if err == nil {
		err = c.do(request, &i)
	}
	return i, err
}

func (c Client) do(request *http.Request, into any) error {
	answer, err := c.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return &StatusError{Status: answer.StatusCode, After: time.Duration(seconds) * time.Second}
	}
	return json.NewDecoder(answer.Body).Decode(into)
}
