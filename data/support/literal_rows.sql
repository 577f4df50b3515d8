-- Rows that are written out: carriers, products, and the order whose story the sample question asks for.

INSERT INTO carriers VALUES
    ('BWX', 'Brightway Express', 'Express', 'BWX999999999', 30.0),
    ('PN', 'Parcelon', 'Standard', 'PN9999999999DE', 31.5),
    ('HP', 'Heron Post', 'Economy', 'HP99999999GB', 2.0),
    ('NF', 'Norrland Freight', 'Freight', 'NF-9999999', 450.0),
    ('CCD', 'CoolChain Direct', 'Chilled', 'CCD99999999', 18.0);

-- sku, name, category, price, weight, fragile, perishable, HS code
INSERT INTO products VALUES
    ('LRK-CE-101', 'Stoneware dinner plate, sand', 'ceramics', 14.9, 0.8, 1, 0, '691200'),
    ('LRK-CE-102', 'Stoneware soup bowl, sand', 'ceramics', 12.5, 0.6, 1, 0, '691200'),
    ('LRK-CE-104', 'Porcelain teapot 1.2 l', 'ceramics', 46.0, 1.1, 1, 0, '691110'),
    ('LRK-CE-107', 'Porcelain espresso cup, set of 4', 'ceramics', 38.0, 0.9, 1, 0, '691110'),
    ('LRK-CE-112', 'Glazed vase, tall', 'ceramics', 59.0, 2.3, 1, 0, '691390'),
    ('LRK-CE-115', 'Terracotta planter 24 cm', 'ceramics', 27.5, 3.4, 1, 0, '691490'),
    ('LRK-GL-201', 'Tumbler 30 cl, set of 6', 'glassware', 29.9, 1.9, 1, 0, '701337'),
    ('LRK-GL-203', 'Red wine glass, set of 4', 'glassware', 44.0, 1.2, 1, 0, '701328'),
    ('LRK-GL-206', 'Glass carafe 1 l', 'glassware', 24.0, 0.9, 1, 0, '701349'),
    ('LRK-GL-209', 'Round wall mirror 60 cm', 'glassware', 89.0, 5.6, 1, 0, '700992'),
    ('LRK-GL-211', 'Hand-blown candle holder', 'glassware', 21.0, 0.7, 1, 0, '701399'),
    ('LRK-TX-301', 'Linen duvet cover 140 x 200', 'textiles', 96.0, 1.4, 0, 0, '630239'),
    ('LRK-TX-302', 'Cotton bed sheet 160 x 270', 'textiles', 48.0, 1.0, 0, 0, '630231'),
    ('LRK-TX-305', 'Terry bath towel, set of 2', 'textiles', 36.0, 1.1, 0, 0, '630260'),
    ('LRK-TX-308', 'Wool throw, grey herringbone', 'textiles', 79.0, 1.2, 0, 0, '630120'),
    ('LRK-TX-311', 'Cotton tablecloth 150 x 250', 'textiles', 42.0, 0.7, 0, 0, '630251'),
    ('LRK-TX-314', 'Velvet cushion cover', 'textiles', 22.0, 0.3, 0, 0, '630493'),
    ('LRK-TX-318', 'Blackout curtain, pair', 'textiles', 68.0, 2.6, 0, 0, '630392'),
    ('LRK-TX-320', 'Tufted wool rug 170 x 240', 'textiles', 310.0, 14.5, 0, 0, '570310'),
    ('LRK-FU-401', 'Oak side table', 'furniture', 149.0, 8.5, 0, 0, '940360'),
    ('LRK-FU-404', 'Walnut bookshelf, five tiers', 'furniture', 389.0, 38.0, 0, 0, '940360'),
    ('LRK-FU-407', 'Ash dining chair, pair', 'furniture', 259.0, 13.0, 0, 0, '940169'),
    ('LRK-FU-409', 'Upholstered footstool', 'furniture', 119.0, 7.2, 0, 0, '940161'),
    ('LRK-FU-412', 'Bedside cabinet, two drawers', 'furniture', 179.0, 17.5, 0, 0, '940350'),
    ('LRK-HO-501', 'Bamboo chopping board', 'home', 26.0, 1.6, 0, 0, '441911'),
    ('LRK-HO-503', 'Stainless cutlery, 24 pieces', 'home', 84.0, 2.1, 0, 0, '821520'),
    ('LRK-HO-506', 'Beeswax pillar candle, set of 3', 'home', 31.0, 1.2, 0, 0, '340600'),
    ('LRK-HO-509', 'Willow storage basket', 'home', 39.0, 1.8, 0, 0, '460219'),
    ('LRK-HO-512', 'Oak picture frame A3', 'home', 34.0, 1.1, 1, 0, '441490'),
    ('LRK-EL-601', 'USB-C charger 45 W', 'electronics', 32.0, 0.2, 0, 0, '850440'),
    ('LRK-EL-603', 'Braided USB-C cable 2 m', 'electronics', 14.0, 0.1, 0, 0, '854442'),
    ('LRK-EL-605', 'Power bank 10 000 mAh', 'electronics', 45.0, 0.3, 0, 0, '850760'),
    ('LRK-EL-608', 'LED desk lamp, dimmable', 'electronics', 72.0, 1.9, 0, 0, '940521'),
    ('LRK-HA-701', 'Alpine cheese hamper', 'hampers', 64.0, 3.2, 0, 1, '040690'),
    ('LRK-HA-703', 'Breakfast hamper for two', 'hampers', 49.0, 3.8, 0, 1, '210690'),
    ('LRK-HA-705', 'Smoked salmon hamper', 'hampers', 78.0, 2.9, 0, 1, '030541');

-- Order #48291: Swiss customs hold it since 30 October 2026; no document tells its status.
INSERT INTO orders VALUES
    (48291, 'C-21877', '2026-10-27 19:14', 'held_at_customs', 'Express', 'CH', 'FC-LEJ', 'Adyra', 28.2, 251.2);

INSERT INTO order_items VALUES
    (48291, 1, 'LRK-CE-107', 2, 38.0),
    (48291, 2, 'LRK-TX-308', 1, 79.0),
    (48291, 3, 'LRK-CE-104', 1, 46.0),
    (48291, 4, 'LRK-TX-314', 1, 22.0);

INSERT INTO shipments VALUES
    (1001, 'BWX204817366', 48291, 'BWX', '2026-10-29', '2026-11-03', NULL, 'held_at_customs', 4.4);

INSERT INTO tracking_events VALUES
    (1001, 1, '2026-10-29 16:42', 'accepted', 'Leipzig air hub', NULL),
    (1001, 2, '2026-10-29 23:58', 'departed', 'Leipzig air hub', NULL),
    (1001, 3, '2026-10-30 06:21', 'arrived', 'Zurich', NULL),
    (1001, 4, '2026-10-30 09:05', 'customs_hold', 'Zurich', 'commercial invoice lacks the HS code of line 2'),
    (1001, 5, '2026-11-02 08:40', 'documents_requested', 'Zurich', 'corrected invoice asked of shipper, ref CH-ZRH-7714'),
    (1001, 6, '2026-11-05 14:12', 'customs_hold', 'Zurich', 'invoice received, awaiting tariff review');
