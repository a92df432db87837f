-- Seals: the chain into which acts are sealed, each line with the hash of the one before, and
-- where it ends. A line has its act as it was.
create table {prefix}seals (
  sequence integer primary key,
  act integer not null unique,
  row integer not null,
  verb text not null,
  who text not null,
  why text not null,
  result text not null,
  at integer not null,
  sealed_at integer not null,
  keyed integer not null,
  previous blob not null,
  hash blob not null
);

create table {prefix}seal_end (
  one integer primary key check (one = 1),
  sequence integer not null,
  keyed integer not null,
  hash blob not null,
  proof blob not null
);

create trigger {prefix}seals_stay before update on {prefix}seals
begin
  select raise(abort, 'seals are append-only');
end;

create trigger {prefix}seals_remain before delete on {prefix}seals
begin
  select raise(abort, 'seals are append-only');
end;
