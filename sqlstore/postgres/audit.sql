-- Seal turn sets the timeouts of a transaction that extends the audit chain, and reports whether
-- this transaction has the lock for the chain. Seal turn does not wait, because only the holder of
-- the lock writes the chain.

-- name: seal turn
select set_config('lock_timeout', '20ms', true), set_config('statement_timeout', '10s', true),
  set_config('idle_in_transaction_session_timeout', '30s', true),
  pg_try_advisory_xact_lock(hashtextextended('{prefix}seals', 0));

-- Times are in microseconds since 1970.

-- Unsealed starts at the lowest number among the audit records that were sealed last, so that a
-- single forged number among them cannot raise the start. A number that the sequence has not yet
-- generated belongs to no audit record of Semel and is not sealed. Without the privilege to read
-- the sequence, unsealed does not check this.

-- name: unsealed
select a.number, a."row", a.verb, a.who, a.why, a.result,
  coalesce((extract(epoch from nullif(nullif(a.at, 'infinity'), '-infinity')) * 1000000)::bigint, 0),
  (extract(epoch from clock_timestamp()) * 1000000)::bigint
from {prefix}acts a
where a.number >= case when $1::boolean then -9223372036854775808 else (
  select case when pg_catalog.count(*) < $2::bigint then -9223372036854775808 else pg_catalog.min(s.act) end
  from (select l.act from {prefix}seals l order by l.sequence desc limit $2::bigint) s) end
and a.number <= (
  select case when pg_catalog.has_sequence_privilege(q.id, 'usage, select'::text)
    then coalesce(pg_catalog.pg_sequence_last_value(q.id), 0::bigint) else 9223372036854775807 end
  from (select pg_catalog.pg_get_serial_sequence('{prefix}acts'::text, 'number'::text)::regclass as id) q)
and not exists (select 1 from {prefix}seals s where s.act = a.number)
order by a.number limit $3;

-- name: seal
insert into {prefix}seals (sequence, act, "row", verb, who, why, result, at, sealed_at, keyed, previous, hash)
values ($1, $2, $3, $4, $5, $6, $7, timestamptz 'epoch' + $8::bigint * interval '1 microsecond',
  timestamptz 'epoch' + $9::bigint * interval '1 microsecond', $10, $11, $12);

-- name: seal end
select sequence, keyed, hash, proof from {prefix}seal_end;

-- name: set seal end
insert into {prefix}seal_end (one, sequence, keyed, hash, proof) values (true, $1, $2, $3, $4)
on conflict (one) do update set sequence = excluded.sequence, keyed = excluded.keyed, hash = excluded.hash, proof = excluded.proof;

-- name: seals
select s.sequence, s.act, s."row", s.verb, s.who, s.why, s.result,
  coalesce((extract(epoch from nullif(nullif(s.at, 'infinity'), '-infinity')) * 1000000)::bigint, 0),
  coalesce((extract(epoch from nullif(nullif(s.sealed_at, 'infinity'), '-infinity')) * 1000000)::bigint, 0),
  s.keyed, s.previous, s.hash,
  a.number, a."row", a.verb, a.who, a.why, a.result,
  coalesce((extract(epoch from nullif(nullif(a.at, 'infinity'), '-infinity')) * 1000000)::bigint, 0)
from {prefix}seals s left join {prefix}acts a on a.number = s.act
where s.sequence > $1 order by s.sequence limit $2;

-- name: audited acts
select a.number, a."row", a.verb, a.who, a.why, a.result,
  coalesce((extract(epoch from nullif(nullif(a.at, 'infinity'), '-infinity')) * 1000000)::bigint, 0), coalesce(s.sequence, 0)
from {prefix}acts a left join {prefix}seals s on s.act = a.number
where a.number > $1 order by a.number limit $2;

-- name: erased
select "row", verb, who, why, result, (extract(epoch from at) * 1000)::bigint from {prefix}acts
where "row" = 0 and result = $1 order by number limit $2;
