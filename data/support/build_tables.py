"""Build support.sqlite, the tables that structured questions of the support corpus are answered from.

Every row is literal or drawn with a fixed seed, so two builds hold the same rows and gold answers stay true.
"""

from __future__ import annotations

import logging
import math
import random
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SCHEMA, LITERAL_ROWS, TARGET = HERE / "schema.sql", HERE / "literal_rows.sql", HERE / "support.sqlite"
SEED = 14
FIRST_DAY, TODAY = date(2026, 1, 5), date(2026, 11, 20)
HOLDS_SINCE = date(2026, 10, 20)
ORDERS = 599  # and the literal one
NUMBERS = range(40412, 48912)
NOT_DRAWN = {48291, 48219}  # the literal order; an example number in a document, never a real order

EU = ("DE", "DE", "DE", "DE", "NL", "NL", "BE", "FR", "FR", "AT", "IT", "ES", "PL", "DK", "SE")
COUNTRIES = {
    "Standard": (*EU, "GB", "GB", "CH", "CH", "NO"),
    "Express": (*EU, "GB", "CH", "US"),
    "Economy": (*EU, "GB", "GB", "GB", "CH"),
    "Freight": EU,
    "Chilled": ("DE", "DE", "NL", "BE"),
}
CUSTOMS_AT = {"CH": "Zurich", "NO": "Oslo", "US": "New York"}
CLASS_WEIGHTS = {"Standard": 47, "Express": 20, "Economy": 11, "Freight": 14, "Chilled": 8}
LATE_SHARE = {"Standard": 0.09, "Express": 0.07, "Economy": 0.15, "Freight": 0.21, "Chilled": 0.05}
# "*" is the rest of the EU; then the value of goods from which a class is free
FEES: Mapping[str, Mapping[str, float]] = {
    "Standard": {"DE": 4.9, "GB": 12.9, "CH": 12.9, "NO": 12.9, "*": 6.9},
    "Express": {"DE": 11.9, "NL": 11.9, "BE": 11.9, "CH": 24.9, "US": 34.0, "*": 16.9},
    "Economy": {"GB": 4.4, "CH": 5.9, "*": 2.9},
    "Freight": {"DE": 49.0, "IT": 95.0, "ES": 95.0, "SE": 95.0, "*": 69.0},
    "Chilled": {"*": 9.5},
}
FREE_FROM = {"Standard": 59.0, "Express": math.inf, "Economy": 35.0, "Freight": 800.0, "Chilled": 120.0}
FREE_FROM_ABROAD = 99.0  # Standard to GB, CH and NO
MOST_KILOS = {"Standard": 25.0, "Express": 25.0, "Economy": 2.0, "Freight": 450.0, "Chilled": 18.0}
HUBS = {"BWX": "Leipzig air", "PN": "Leipzig", "HP": "Leipzig", "NF": "Rotterdam", "CCD": "Leipzig cold dock"}
LANES = {"GB": "LEJ-CVT", "CH": "CHZ-LEJ", "NO": "NOR-LEJ"}
REASONS = ("changed_mind", "changed_mind", "wrong_item", "defective", "not_as_described")
GRADES = ("A", "A", "A", "B", "B", "B", "C", "C", "D")

logger = logging.getLogger(__name__)


class Carrier(NamedTuple):
    """The columns of a carrier that drawing shipments needs."""

    id: str
    shipping_class: str
    tracking_format: str


class Product(NamedTuple):
    """The columns of a product that drawing orders needs."""

    sku: str
    category: str
    price: float
    kilos: float
    fragile: int
    perishable: int


class Item(NamedTuple):
    """One line of an order."""

    product: Product
    quantity: int


# the drawn rows of each table in the order of its columns, so that one loop can insert them
Rows = dict[str, list[tuple[object, ...]]]
TABLES = ("orders", "order_items", "shipments", "tracking_events", "returns", "refunds")


def add_business_days(day: date, count: int) -> date:
    """Weekends are skipped and holidays are not, as in the carriers' own promise dates."""
    while count > 0 or day.weekday() > 4:
        day += timedelta(days=1)
        if day.weekday() < 5:
            count -= 1
    return day


def stamp(day: date, rng: random.Random, first: int, last: int) -> str:
    """A minute inside working hours; seconds would only make the file larger."""
    return f"{day.isoformat()} {rng.randint(first, last):02d}:{rng.randint(0, 59):02d}"


def promise_days(shipping_class: str, country: str, fragile: bool) -> int:
    """The upper end of the promise that customers are given; fragile handling costs a day on Standard."""
    if shipping_class == "Standard":
        return (8 if country in ("GB", "CH", "NO") else 5) + fragile
    if shipping_class == "Express":
        return 1 if country in ("DE", "NL", "BE") else {"US": 5, "CH": 3}.get(country, 2)
    return {"Economy": 10, "Freight": 9, "Chilled": 1}[shipping_class]


def pick_items(products: Sequence[Product], shipping_class: str, rng: random.Random) -> list[Item]:
    """Choose what the carrier of the class would take."""
    if shipping_class == "Chilled":
        pool = [product for product in products if product.perishable]
    elif shipping_class == "Freight":
        pool = [product for product in products if product.kilos > 7.0]
    else:
        pool = [product for product in products if not product.perishable and product.kilos <= 5.6]
    if shipping_class == "Economy":
        pool = [row for row in pool if row.kilos <= 1.8 and row.price < 80 and not row.fragile]
    single = shipping_class in ("Economy", "Chilled")
    lines = 1 if single else rng.choice((1, 1, 2, 2, 3))
    return [Item(product, rng.randint(1, 1 if single else 3)) for product in rng.sample(pool, lines)]


def add_shipment(
    rows: Rows,
    order_no: int,
    carrier: Carrier,
    country: str,
    start: date,
    promise: int,
    kilos: float,
    rng: random.Random,
) -> tuple[str, date | None]:
    """Append a shipment with its events; returns its status and the day it was delivered."""
    hub = "Coventry" if country == "GB" else HUBS[carrier.id]
    shipped = add_business_days(start, 0 if promise < 3 else rng.randint(0, 1))
    late = rng.random() < LATE_SHARE[carrier.shipping_class]
    taken = promise + rng.randint(1, 4) if late else rng.randint(max(1, promise - 2), promise)
    arrival = add_business_days(shipped, taken)
    at_border = add_business_days(shipped, 1)
    crosses = country in CUSTOMS_AT and taken > 1 and at_border < TODAY
    held = crosses and shipped >= HOLDS_SINCE and rng.random() < 0.6
    lost = not held and arrival < HOLDS_SINCE and rng.random() < 0.008
    delivered = arrival if arrival <= TODAY and not lost and not held else None
    delivered_at = stamp(delivered, rng, 14, 19) if delivered else None
    events: list[tuple[str, str, str, str | None]] = [(stamp(shipped, rng, 14, 18), "accepted", hub, None)]
    if crosses:
        events.append((stamp(at_border, rng, 5, 6), "customs_hold", CUSTOMS_AT[country], None))
    if crosses and not held:
        events.append((stamp(at_border, rng, 8, 13), "customs_cleared", CUSTOMS_AT[country], None))
    if late and delivered and taken > 2 and rng.random() < 0.5:
        attempt = add_business_days(shipped, taken - 1)
        events.append((stamp(attempt, rng, 15, 19), "attempted", country, "nobody at the address"))
    if delivered_at:
        events.append((delivered_at, "delivered", country, None))
    if lost:
        events.append((stamp(add_business_days(arrival, 10), rng, 9, 16), "declared_lost", hub, None))
    status = "delivered" if delivered else "lost" if lost else "held_at_customs" if held else "in_transit"
    number = "".join(str(rng.randint(0, 9)) if char == "9" else char for char in carrier.tracking_format)
    shipment_id = len(rows["shipments"]) + 1
    promised = add_business_days(shipped, promise).isoformat()
    rows["shipments"].append(
        (
            shipment_id,
            number,
            order_no,
            carrier.id,
            shipped.isoformat(),
            promised,
            delivered_at,
            status,
            round(kilos, 1),
        )
    )
    rows["tracking_events"].extend((shipment_id, seq, *event) for seq, event in enumerate(events, 1))
    return status, delivered


def add_refund(
    rows: Rows,
    order_no: int,
    rma: str | None,
    reason: str,
    amount: float,
    asked: date,
    rng: random.Random,
    credit: bool = False,
) -> None:
    """Append a refund, due five business days after the request; some are late and some still to come."""
    if asked > TODAY:
        return
    paid = add_business_days(asked, 5 if rng.random() < 0.85 else rng.randint(6, 9))
    status = "pending" if paid > TODAY else ("failed" if rng.random() < 0.04 else "paid")
    claim = f"DMG-{rng.randint(100000, 999999)}" if reason in ("damage", "cold_chain") else None
    rows["refunds"].append(
        (
            7001 + len(rows["refunds"]),
            order_no,
            rma,
            claim,
            reason,
            "store_credit" if credit else "original_payment",
            round(amount, 2),
            status,
            asked.isoformat(),
            paid.isoformat() if status == "paid" else None,
        )
    )


def add_return(
    rows: Rows, order_no: int, line_no: int, item: Item, lane: str, asked: date, rng: random.Random
) -> None:
    """Append a return as far as it has come by today, and its refund once it passed inspection."""
    rma = f"RMA-{rng.randint(200000, 899999)}"
    received = asked + timedelta(days=rng.randint(4, 13))
    inspected = add_business_days(received, rng.randint(1, 3))
    grade = rng.choice(GRADES)
    seen = inspected <= TODAY
    rows["returns"].append(
        (
            rma,
            order_no,
            line_no,
            item.quantity,
            rng.choice(REASONS),
            lane,
            asked.isoformat(),
            received.isoformat() if received <= TODAY else None,
            inspected.isoformat() if seen else None,
            grade if seen else None,
        )
    )
    if seen and grade != "D":
        share = 0.7 if grade == "C" else 1.0
        add_refund(rows, order_no, rma, "return", item.quantity * item.product.price * share, inspected, rng)


def add_after_sales(
    rows: Rows,
    order_no: int,
    items: Sequence[Item],
    country: str,
    centre: str,
    delivered: date,
    rng: random.Random,
) -> None:
    """Append a return, or a damage or cold-chain refund, for a share of delivered orders."""
    line_no = rng.randint(1, len(items))
    item = items[line_no - 1]
    amount = item.quantity * item.product.price
    chance = rng.random()
    if item.product.perishable and chance < 0.25:
        if chance < 0.08:
            add_refund(rows, order_no, None, "cold_chain", amount, delivered + timedelta(days=4), rng)
        elif chance < 0.16:
            add_refund(rows, order_no, None, "damage", amount, delivered, rng)
        else:  # reported after more than 24 hours: half as store credit
            asked = delivered + timedelta(days=2)
            add_refund(rows, order_no, None, "damage", amount / 2, asked, rng, credit=True)
    elif not item.product.perishable and chance < 0.15:
        asked = delivered + timedelta(days=rng.randint(2, 27))
        if asked <= TODAY:
            lane = LANES.get(country, "RTM-LEJ" if centre == "FC-RTM" else "direct")
            add_return(rows, order_no, line_no, item, lane, asked, rng)
    elif item.product.fragile and chance > 0.93:
        add_refund(rows, order_no, None, "damage", amount, delivered + timedelta(days=rng.randint(0, 2)), rng)


def add_order(
    rows: Rows,
    order_no: int,
    placed: date,
    carriers: Sequence[Carrier],
    products: Sequence[Product],
    rng: random.Random,
) -> None:
    """Append one order with everything that follows from it."""
    carrier = rng.choices(carriers, weights=[CLASS_WEIGHTS[row.shipping_class] for row in carriers])[0]
    shipping_class = carrier.shipping_class
    country = rng.choice(COUNTRIES[shipping_class])
    centre = "FC-CVT" if country == "GB" else ("FC-RTM" if shipping_class == "Freight" else "FC-LEJ")
    items = pick_items(products, shipping_class, rng)
    promise = promise_days(shipping_class, country, any(item.product.fragile for item in items))
    kilos = sum(item.quantity * item.product.kilos for item in items)
    start = add_business_days(placed, rng.randint(0, 1))
    cancelled = rng.random() < 0.03
    statuses: list[str] = []
    days: list[date] = []
    if not cancelled and start < TODAY:
        split = len(items) > 1 or items[0].quantity > 1
        parts = max(rng.choice((1, 2, 2, 2)) if split else 1, math.ceil(kilos / MOST_KILOS[shipping_class]))
        for _ in range(parts):
            status, day = add_shipment(rows, order_no, carrier, country, start, promise, kilos / parts, rng)
            statuses.append(status)
            days.extend([day] if day else [])
    order_status = "cancelled" if cancelled else "paid"
    if statuses:
        ranks = ("lost", "held_at_customs", "in_transit", "delivered")
        order_status = min(statuses, key=ranks.index).replace("in_transit", "shipped")
    goods = sum(item.quantity * item.product.price for item in items)
    abroad = shipping_class == "Standard" and country in ("GB", "CH", "NO")
    free = goods >= (FREE_FROM_ABROAD if abroad else FREE_FROM[shipping_class])
    fee = 0.0 if free else FEES[shipping_class].get(country, FEES[shipping_class]["*"])
    fee += 1.1 * max(0, math.ceil(kilos - 2)) if shipping_class == "Express" else 0.0
    gateway = "Stellapay" if rng.random() < 0.12 else "Adyra"
    rows["orders"].append(
        (
            order_no,
            f"C-{rng.randint(10000, 29999)}",
            stamp(placed, rng, 6, 22),
            order_status,
            shipping_class,
            country,
            centre,
            gateway,
            round(fee, 2),
            round(goods + fee, 2),
        )
    )
    rows["order_items"].extend(
        (order_no, line_no, item.product.sku, item.quantity, item.product.price)
        for line_no, item in enumerate(items, 1)
    )
    if order_status == "lost":
        add_refund(rows, order_no, None, "lost_parcel", goods + fee, add_business_days(placed, 25), rng)
    elif order_status == "delivered":
        add_after_sales(rows, order_no, items, country, centre, max(days), rng)


def draw_rows(carriers: Sequence[Carrier], products: Sequence[Product], seed: int = SEED) -> Rows:
    """Draw all orders; their numbers rise with the date, as the shop counts them up."""
    rng = random.Random(seed)
    rows: Rows = {table: [] for table in TABLES}
    numbers = sorted(rng.sample([number for number in NUMBERS if number not in NOT_DRAWN], ORDERS))
    for number in numbers:
        offset = (number - NUMBERS.start) * (TODAY - FIRST_DAY).days // len(NUMBERS)
        add_order(rows, number, FIRST_DAY + timedelta(days=offset), carriers, products, rng)
    return rows


def build(target: Path = TARGET, seed: int = SEED) -> dict[str, int]:
    """Write a fresh database file and return the number of drawn rows of each table."""
    target.unlink(missing_ok=True)
    connection = sqlite3.connect(target)
    try:
        connection.executescript("PRAGMA page_size = 1024; PRAGMA foreign_keys = ON;")
        connection.executescript(SCHEMA.read_text(encoding="utf-8"))
        connection.executescript(LITERAL_ROWS.read_text(encoding="utf-8"))
        carriers = connection.execute("SELECT carrier_id, shipping_class, tracking_format FROM carriers")
        products = connection.execute(
            "SELECT sku, category, price_eur, weight_kg, fragile, perishable FROM products"
        )
        rows = draw_rows([Carrier(*row) for row in carriers], [Product(*row) for row in products], seed)
        for table, values in rows.items():
            marks = ", ".join("?" * len(values[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
        connection.commit()
        connection.execute("VACUUM")
    finally:
        connection.close()
    return {table: len(values) for table, values in rows.items()}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    logger.info("wrote %s: %s", TARGET.name, build())
