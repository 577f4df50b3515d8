-- Extract of the shop's operations database: about 600 orders of January to November 2026, of which no two
-- share a number. Money is EUR, times are UTC, today is 2026-11-20.

CREATE TABLE carriers (
    carrier_id TEXT PRIMARY KEY,          -- short code, also the prefix of most tracking numbers
    name TEXT NOT NULL UNIQUE,            -- name as customers see it, e.g. 'Brightway Express'
    shipping_class TEXT NOT NULL,         -- the class this carrier serves: Standard, Express, Economy, Freight, Chilled
    tracking_format TEXT NOT NULL,        -- pattern of tracking numbers; 9 stands for a digit
    max_weight_kg REAL NOT NULL           -- heaviest single parcel or pallet accepted
) STRICT;

CREATE TABLE products (
    sku TEXT PRIMARY KEY,                 -- LRK- + category letters + number, as on the barcode label
    name TEXT NOT NULL,
    category TEXT NOT NULL,               -- ceramics, glassware, textiles, furniture, home, electronics, hampers
    price_eur REAL NOT NULL CHECK (price_eur > 0),
    weight_kg REAL NOT NULL CHECK (weight_kg > 0),
    fragile INTEGER NOT NULL CHECK (fragile IN (0, 1)),       -- 1 = handling class F, double-boxed
    perishable INTEGER NOT NULL CHECK (perishable IN (0, 1)), -- 1 = chilled only and not returnable
    hs_code TEXT NOT NULL                 -- six-digit Harmonized System code for customs
) STRICT;

CREATE TABLE orders (
    order_no INTEGER PRIMARY KEY,         -- five digits, shown to customers with a hash: #48291
    customer_ref TEXT NOT NULL,           -- pseudonym; names and addresses are not kept here
    placed_at TEXT NOT NULL,              -- 'YYYY-MM-DD HH:MM'
    status TEXT NOT NULL CHECK (status IN ('paid', 'shipped', 'held_at_customs', 'delivered',
        'lost', 'cancelled')),            -- of several shipments, that of the one that needs most attention
    shipping_class TEXT NOT NULL,
    destination_country TEXT NOT NULL,    -- ISO 3166-1 alpha-2; the United Kingdom is GB
    fulfilment_centre TEXT NOT NULL,      -- FC-LEJ Leipzig, FC-RTM Rotterdam, FC-CVT Coventry
    gateway TEXT NOT NULL,                -- Adyra or Stellapay (fallback)
    shipping_fee_eur REAL NOT NULL,
    total_eur REAL NOT NULL               -- items plus shipping fee
) STRICT;

CREATE TABLE order_items (
    order_no INTEGER NOT NULL REFERENCES orders (order_no),
    line_no INTEGER NOT NULL,             -- 1, 2, ... within the order
    sku TEXT NOT NULL REFERENCES products (sku),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    unit_price_eur REAL NOT NULL,         -- price on the day of the order
    PRIMARY KEY (order_no, line_no)
) STRICT, WITHOUT ROWID;

CREATE TABLE shipments (
    shipment_id INTEGER PRIMARY KEY,
    tracking_number TEXT NOT NULL UNIQUE,
    order_no INTEGER NOT NULL REFERENCES orders (order_no),
    carrier_id TEXT NOT NULL REFERENCES carriers (carrier_id),
    shipped_on TEXT NOT NULL,             -- date handed to the carrier
    promised_by TEXT NOT NULL,            -- last date inside the promise of the shipping class
    delivered_at TEXT,                    -- NULL until delivered; late when date(delivered_at) > promised_by
    status TEXT NOT NULL CHECK (status IN ('in_transit', 'held_at_customs', 'delivered', 'lost')),
    weight_kg REAL NOT NULL
) STRICT;

CREATE TABLE tracking_events (
    shipment_id INTEGER NOT NULL REFERENCES shipments (shipment_id),
    seq INTEGER NOT NULL,                 -- 1 is the oldest event of the shipment
    happened_at TEXT NOT NULL,
    event TEXT NOT NULL,                  -- accepted, departed, customs_hold, customs_cleared, attempted, delivered, ...
    location TEXT NOT NULL,
    note TEXT,                            -- the carrier's remark, rarely filled
    PRIMARY KEY (shipment_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE returns (
    rma_number TEXT PRIMARY KEY,          -- Return Merchandise Authorization: RMA- + 6 digits
    order_no INTEGER NOT NULL REFERENCES orders (order_no),
    line_no INTEGER NOT NULL,
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    reason TEXT NOT NULL,                 -- changed_mind, wrong_item, defective, not_as_described
    lane TEXT NOT NULL,                   -- returns lane: LEJ-CVT, RTM-LEJ, CHZ-LEJ, NOR-LEJ, or 'direct' to the centre
    authorised_on TEXT NOT NULL,
    received_on TEXT,                     -- NULL while on its way back
    inspected_on TEXT,                    -- NULL until inspected
    grade TEXT CHECK (grade IN ('A', 'B', 'C', 'D')), -- grade of the inspection; D is not refunded here
    FOREIGN KEY (order_no, line_no) REFERENCES order_items (order_no, line_no)
) STRICT;

CREATE TABLE refunds (
    refund_id INTEGER PRIMARY KEY,
    order_no INTEGER NOT NULL REFERENCES orders (order_no),
    rma_number TEXT REFERENCES returns (rma_number), -- set when the refund follows a return
    claim_number TEXT UNIQUE,             -- DMG- + 6 digits when it follows a damage claim
    reason TEXT NOT NULL,                 -- return, damage, lost_parcel, cold_chain, goodwill
    method TEXT NOT NULL CHECK (method IN ('original_payment', 'store_credit')),
    amount_eur REAL NOT NULL CHECK (amount_eur > 0), -- gross; the deduction for a label is booked apart
    status TEXT NOT NULL CHECK (status IN ('pending', 'paid', 'failed')),
    requested_on TEXT NOT NULL,
    paid_on TEXT                          -- NULL unless status is 'paid'
) STRICT;

CREATE INDEX orders_by_date ON orders (placed_at);
CREATE INDEX shipments_by_order ON shipments (order_no);
CREATE INDEX shipments_by_carrier ON shipments (carrier_id, delivered_at);
CREATE INDEX returns_by_order ON returns (order_no);
CREATE INDEX refunds_by_order ON refunds (order_no);
