package console

import (
	"net/http"
	"slices"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// maxBatch bounds the calls that are decided together.
const maxBatch = 50

// batchData is the data of the page of several calls.
type batchData struct {
	Cards []*card
	// Open is how many of them can be decided.
	Open int
	// Outcomes are what became of the decisions; nil if none was made.
	Outcomes []outcome
}

// outcome is what became of the decision about one call.
type outcome struct {
	Approval httpapi.Approval
	// Problem is why the decision was refused; nil if it was not.
	Problem *httpapi.Problem
}

// showBatch shows the calls that the query names, each whole.
func showBatch(v *visit) (content, error) {
	ids, err := batchIDs(v.URL.Query()["id"])
	if err != nil {
		return content{}, err
	}
	var data batchData
	for _, id := range ids {
		whole, err := v.api.Approval(v.Context(), id)
		if err != nil {
			return content{}, err
		}
		c := newCard(v, whole)
		c.Suffix = "." + id
		if c.Mine {
			data.Open++
		}
		data.Cards = append(data.Cards, c)
	}
	return content{Title: "Decide together", Body: data}, nil
}

func batchIDs(ids []string) ([]string, error) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 || len(ids) > maxBatch {
		return nil, &httpapi.Problem{
			Status: http.StatusBadRequest, Title: "No calls are selected, or more than 50", Detail: "Nothing was decided.", Hint: "go back and select from 1 to 50 calls",
		}
	}
	return ids, nil
}

// decideBatch sends one decision for each call, bound to that call, and shows what became of each.
func decideBatch(v *visit) (string, *content, error) {
	ids, err := batchIDs(v.PostForm["id"])
	if err != nil {
		return "", nil, err
	}
	decide := v.api.Reject
	if v.PostForm.Get("decision") == "approve" {
		decide = v.api.Approve
	}
	var data batchData
	for _, id := range ids {
		var one outcome
		record, err := decide(v.Context(), id, answerOf(v, "."+id))
		one.Approval.Record = record
		if err != nil {
			one.Problem = problemOf(err)
			if whole, findErr := v.api.Approval(v.Context(), id); findErr == nil {
				one.Approval = whole
			} else {
				one.Approval.Record = approval.Record{ID: id}
			}
		}
		data.Outcomes = append(data.Outcomes, one)
	}
	return "", &content{Title: "Decided together", Body: data}, nil
}
