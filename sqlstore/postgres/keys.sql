-- Key waits for another transaction that changes the key, and reads the time after the wait.

-- name: key
with key as materialized (select k.* from {prefix}keys k where k.key = $1 for update)
select (extract(epoch from clock_timestamp()) * 1000000)::bigint, k.ended, k.token, (extract(epoch from k.first_at) * 1000000)::bigint, (extract(epoch from k.locked_until) * 1000000)::bigint, (extract(epoch from k.kept_until) * 1000000)::bigint, k.started, k.finished, k.version, k.sum, k.result,
  (extract(epoch from k.leased_at) * 1000000)::bigint
from (select 1) one left join key k on true;

-- Known key reads a key for display, without a lock.

-- name: known key
select coalesce(k.ended, 0), (extract(epoch from k.first_at) * 1000)::bigint, (extract(epoch from k.locked_until) * 1000)::bigint, (extract(epoch from k.kept_until) * 1000)::bigint,
  k.started, k.finished, k.version, k.sum, (k.result is not null)::int
from {prefix}keys k where k.key = $1 and k.kept_until > clock_timestamp();

-- New key writes nothing if another transaction has written the key first.

-- name: new key
insert into {prefix}keys (consumer, source, id, key, ended, token, first_at, locked_until, kept_until, started, finished, version, sum, result, leased_at)
values ($1, $2, $3, $4, $5, $6, timestamptz 'epoch' + $7::bigint * interval '1 microsecond', timestamptz 'epoch' + $8::bigint * interval '1 microsecond',
  timestamptz 'epoch' + $9::bigint * interval '1 microsecond', $10, $11, $12, $13, $14, timestamptz 'epoch' + $15::bigint * interval '1 microsecond')
on conflict do nothing;

-- name: change key
update {prefix}keys set ended = $2, token = $3, first_at = timestamptz 'epoch' + $4::bigint * interval '1 microsecond',
  locked_until = timestamptz 'epoch' + $5::bigint * interval '1 microsecond', kept_until = timestamptz 'epoch' + $6::bigint * interval '1 microsecond',
  started = $7, finished = $8, version = $9, sum = $10, result = $11,
  leased_at = timestamptz 'epoch' + $12::bigint * interval '1 microsecond'
where key = $1;

-- name: remove key
delete from {prefix}keys where key = $1;

-- name: forget keys
delete from {prefix}keys where key in (
  select k.key from {prefix}keys k where k.kept_until < statement_timestamp() order by k.kept_until limit $1 for update skip locked);

-- Abandoned keys reads some keys, and returns those whose calls no process is working on. If there
-- may be more keys, it also returns the last key that it has read, so that the next call can
-- continue there.

-- name: abandoned keys
select w.key, w.here, w.place = $2, case when w.here then w.source end, case when w.here then w.id end, w.started, w.quiet, case when w.here then w.result end
from (
  select k.key, k.source, k.id, k.started, k.result, row_number() over (order by k.key) as place,
    (extract(epoch from clock_timestamp() - k.locked_until) * 1000000)::bigint as quiet,
    k.consumer = $3 and k.result is not null and k.ended in (0, 3, 4) and k.kept_until > statement_timestamp()
      and k.locked_until <= statement_timestamp() - $4::bigint * interval '1 microsecond' as here
  from (select * from {prefix}keys where key > $1 order by key limit $2) k
) w
where w.here or w.place = $2
order by w.key;
