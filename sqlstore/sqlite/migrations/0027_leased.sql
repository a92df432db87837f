-- When a key's lease was set: how long it is, is known by that, so that a lease of a time when
-- the clock was ahead ends after its own length.
alter table {prefix}keys add column leased_at integer;
