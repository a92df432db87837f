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

// Client calls the provider at the address URL.
type Client struct {
	URL  string
	HTTP *http.Client
}

// StatusError is a response of the provider without a receipt.
type StatusError struct {
	Status int
	// After is the value of the header Retry-After.
	After time.Duration
}

// Error implements error.
func (e *StatusError) Error() string { return fmt.Sprintf("the provider answered %d", e.Status) }

// Charge asks the provider to charge a payment. A *StatusError is the provider's response. After any other error, the
// outcome of the call is unknown, unless the request was never sent.
func (c Client) Charge(ctx context.Context, key string, p Payment) (Receipt, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return Receipt{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/charges", bytes.NewReader(body))
	if err != nil {
		return Receipt{}, err
	}
	request.GetBody = nil // without GetBody, the HTTP client reports a broken connection and does not retry by itself
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	var receipt Receipt
	err = c.do(request, &receipt)
	if err == nil && receipt.Reference != p.Reference {
		err = fmt.Errorf("the receipt is for %q, not for %q", receipt.Reference, p.Reference)
	}
	return receipt, err
}

// Ask queries the provider for the outcome of a payment.
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
