package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/toolhost/toolhost/sdk/pdf/pdftest"
)

// shop makes a repository with a Python package, TypeScript modules, documents and data.
func shop(dir string) *repo {
	r := newRepo(dir)
	r.write("README.md", "# shop\n\n`python3 -m unittest` tests the server, `npm test` the pages.\n", ".gitignore", "node_modules/\n__pycache__/\n",
		"package.json", shopPackage, "pyproject.toml", "[project]\nname = \"shop\"\nversion = \"2.3.1\"\n", "shop/__init__.py", "__version__ = \"2.3.1\"\n", "tests/__init__.py", "")
	r.commit("Begin")
	r.write("shop/prices.py", shopPrices, "tests/test_prices.py", shopPricesTest)
	r.commit("prices: add discounts")
	r.write("shop/server.py", shopServer)
	r.commit("server: serve orders")
	r.write("web/cart.ts", shopCart, "web/cart.test.ts", shopCartTest)
	r.commit("web: add the cart")
	r.write("web/format.ts", shopFormat)
	r.commit("web: format prices")
	random := rand.New(rand.NewPCG(1, 2))
	r.write("docs/terms.pdf", string(pdftest.OfPages(shopTerms(random)...)), "data/orders.csv", shopOrders(random), "notebooks/sales.ipynb", shopNotebook(random))
	r.commit("docs, data: add the terms and last year's orders")
	return r
}

const shopPackage = `{
  "name": "shop",
  "version": "2.3.1",
  "type": "module",
  "private": true,
  "scripts": {
    "test": "node --test web/*.test.ts"
  }
}
`

const shopPrices = `"""Prices in cents."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """A line of an order."""

    name: str
    price: int
    count: int = 1


# From how many cents on an order gets which discount, in percent.
DISCOUNTS = [(100_00, 10), (50_00, 5), (20_00, 2)]


def subtotal(items: list[Item]) -> int:
    """Return the sum of all items."""
    return sum(item.price * item.count for item in items)


def discount(amount: int) -> int:
    """Return the discount on an amount: the best one that it reaches."""
    for least, percent in DISCOUNTS:
        if amount >= least:
            return amount * percent // 100
    return 0


def shipping(amount: int, country: str) -> int:
    """Return the cost of shipping, which is free at home from 30.00 on."""
    if country == "DE":
        return 0 if amount >= 30_00 else 4_90
    return 14_90


def total(items: list[Item], country: str = "DE") -> int:
    """Return what a customer pays."""
    amount = subtotal(items)
    amount -= discount(amount)
    return amount + shipping(amount, country)
`

const shopPricesTest = `import unittest

from shop.prices import Item, discount, shipping, total


class Prices(unittest.TestCase):
    def test_discount(self):
        self.assertEqual(discount(19_99), 0)
        self.assertEqual(discount(20_00), 40)
        self.assertEqual(discount(100_00), 10_00)

    def test_shipping(self):
        self.assertEqual(shipping(30_00, "DE"), 0)
        self.assertEqual(shipping(29_99, "DE"), 4_90)
        self.assertEqual(shipping(100_00, "FR"), 14_90)

    def test_total(self):
        self.assertEqual(total([Item("tea", 5_00, 2)]), 14_90)
        self.assertEqual(total([Item("pot", 50_00, 2)]), 90_00)


if __name__ == "__main__":
    unittest.main()
`

const shopServer = `"""Serves orders as JSON."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

ORDERS = [{"id": 1, "item": "tea", "state": "sent"}, {"id": 2, "item": "pot", "state": "open"}]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/health":
            self.reply(200, {"ok": True})
        elif self.path == "/orders":
            self.reply(200, {"orders": ORDERS, "open": sum(o["state"] == "open" for o in ORDERS)})
        else:
            self.reply(404, {"error": "no such page"})

    def reply(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(text)


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
`

const shopCart = `export interface Item {
  name: string;
  price: number; // cents
  count: number;
}

/** A cart, which keeps one line for each item. */
export class Cart {
  private items = new Map<string, Item>();

  /** Adds an item, or raises its count. */
  add(item: Item): void {
    const known = this.items.get(item.name);
    this.items.set(item.name, known ? { ...known, count: known.count + item.count } : { ...item });
  }

  /** Removes one piece of an item. */
  remove(name: string): void {
    const known = this.items.get(name);
    if (!known) return;
    if (known.count > 1) this.items.set(name, { ...known, count: known.count - 1 });
    else this.items.delete(name);
  }

  get lines(): number {
    return this.items.size;
  }

  get total(): number {
    return [...this.items.values()].reduce((sum, item) => sum + item.price * item.count, 0);
  }
}
`

const shopCartTest = `import assert from "node:assert/strict";
import { test } from "node:test";
import { Cart } from "./cart.ts";

test("an item that is added twice is one line", () => {
  const cart = new Cart();
  cart.add({ name: "tea", price: 500, count: 1 });
  cart.add({ name: "tea", price: 500, count: 2 });
  assert.equal(cart.lines, 1);
  assert.equal(cart.total, 1500);
});

test("the last piece is removed with its line", () => {
  const cart = new Cart();
  cart.add({ name: "pot", price: 5000, count: 2 });
  cart.remove("pot");
  assert.equal(cart.total, 5000);
  cart.remove("pot");
  assert.equal(cart.lines, 0);
});
`

const shopFormat = `/** Writes cents as euros. */
export function euros(cents: number): string {
  return (cents / 100).toFixed(2) + " €";
}
`

// shopTerms returns the pages of the terms.
func shopTerms(random *rand.Rand) []string {
	words := strings.Fields("shop customer order price goods delivery return payment invoice period notice damage consent agreement liability court address claim defect delay refund partner carrier warranty deposit interest")
	var pages []string
	for i, title := range []string{"Scope", "Orders", "Prices", "Delivery", "Returns", "Liability"} {
		lines := []string{fmt.Sprintf("%d. %s", i+1, title)}
		for n := range 36 {
			line := []string{fmt.Sprintf("%d.%d The", i+1, n+1)}
			for range 8 {
				line = append(line, words[random.IntN(len(words))])
			}
			lines = append(lines, strings.Join(line, " "))
		}
		if title == "Returns" {
			lines = append(lines, "5.37 The customer may return goods within 30 days, at the cost of the shop.")
		}
		pages = append(pages, strings.Join(lines, "\n"))
	}
	return pages
}

// shopOrders returns a table of 2,000 orders.
func shopOrders(random *rand.Rand) string {
	var b strings.Builder
	b.WriteString("id,day,country,cents\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "%d,2025-%02d-%02d,%s,%d\n", i+1, 1+random.IntN(12), 1+random.IntN(28), []string{"DE", "FR", "AT", "PL"}[random.IntN(4)], 500+random.IntN(20000))
	}
	return b.String()
}

// shopNotebook returns a notebook with outputs.
func shopNotebook(random *rand.Rand) string {
	cell := func(id, code, output string) string {
		return fmt.Sprintf(`  {
   "cell_type": "code",
   "execution_count": 1,
   "id": %q,
   "metadata": {},
   "outputs": [{"name": "stdout", "output_type": "stream", "text": [%q]}],
   "source": [%q]
  }`, id, output, code)
	}
	var rows strings.Builder
	for i := range 40 {
		fmt.Fprintf(&rows, "%d %d\n", i, random.IntN(20000))
	}
	return "{\n \"cells\": [\n" + strings.Join([]string{
		cell("load", "import csv\nrows = list(csv.DictReader(open('data/orders.csv')))\nprint(len(rows))", "2000\n"),
		cell("show", "for i, row in enumerate(rows[:40]): print(i, row['cents'])", rows.String()),
		cell("mean", "mean = sum(int(r['cents']) for r in rows) / 100\nprint(mean)", "210374.11\n"),
	}, ",\n") + "\n ],\n \"metadata\": {\"language_info\": {\"name\": \"python\"}},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n"
}

// serverLog returns a log of 20,000 lines with three kinds of errors.
func serverLog() string {
	random := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	for i := range 20_000 {
		at := fmt.Sprintf("2026-03-02T%02d:%02d:%02dZ", i/3600, i/60%60, i%60)
		switch {
		case i%1000 == 500:
			fmt.Fprintf(&b, "%s ERROR payment: timeout after 30s, order %d\n", at, random.IntN(9000))
		case i%2000 == 700:
			fmt.Fprintf(&b, "%s ERROR stock: no item %d\n", at, random.IntN(900))
		case i%3000 == 900:
			fmt.Fprintf(&b, "%s ERROR mail: connection refused\n", at)
		default:
			fmt.Fprintf(&b, "%s INFO GET /orders/%d 200 %dms\n", at, random.IntN(9000), random.IntN(90))
		}
	}
	return b.String()
}
