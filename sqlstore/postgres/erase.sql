-- name: erase turn
select set_config('lock_timeout', '1s', true), set_config('statement_timeout', '30s', true),
  set_config('idle_in_transaction_session_timeout', '30s', true);

-- Erased rows have the reason erased, and no other row can have that reason. Erased rows are
-- skipped.

-- name: erasable rows
select i.number, s.consumer, s.source, i.id, i.long_id
from {prefix}inbox i join {prefix}scopes s on s.number = i.scope
where i.number > $1 and i.reason <> 'erased'{filter} order by i.number limit $2;

-- name: erasable results
select r.scope, r.id, s.consumer, s.source, m.long_id, (extract(epoch from m.at) * 1000)::bigint
from {prefix}results r join {prefix}scopes s on s.number = r.scope
left join {prefix}markers m on m.scope = r.scope and m.id = r.id
where (r.scope, r.id) > ($1::bigint, $2::bytea){filter} order by r.scope, r.id limit $3;

-- name: erasable keys
select s.key, s.consumer, s.source, s.id, (extract(epoch from s.first_at) * 1000)::bigint
from {prefix}keys s where s.key > $1 and s.result is not null{filter} order by s.key limit $2;

-- name: identity rows
select i.number, s.consumer, s.source, i.id, i.long_id, i.state, i.reason, i.type, i.envelope,
  (extract(epoch from nullif(nullif(i.received_at, 'infinity'), '-infinity')) * 1000)::bigint
from {prefix}scopes s join {prefix}inbox i on i.scope = s.number
where s.consumer = $1 and s.source = $2 and i.id in ($3::bytea, $4::bytea) order by i.number;

-- name: caused rows
select i.number, s.consumer, s.source, i.id, i.long_id, i.state, i.reason, i.type, i.envelope,
  (extract(epoch from nullif(nullif(i.received_at, 'infinity'), '-infinity')) * 1000)::bigint
from {prefix}inbox i join {prefix}scopes s on s.number = i.scope
where i.cause = $1 order by i.number;

-- name: lock row
select i.state from {prefix}inbox i where i.number = $1 and i.state in ('COMPLETED', 'DISCARDED') for update skip locked;

-- name: erase row
update {prefix}inbox set reason = 'erased', payload = null, body_removed_at = coalesce(body_removed_at, clock_timestamp()),
  key = null, envelope = $2, schema = '', broker_id = '', first_error = '', last_error = '', steps = null, line = null, place = null,
  revision = revision + 1, changed_at = clock_timestamp()
where number = $1;

-- name: erase edits
update {prefix}edits set body = null where "row" = $1 and body is not null;

-- name: erase results
delete from {prefix}results r using {prefix}scopes s
where r.scope = s.number and s.consumer = $1 and s.source = $2 and r.id = $3;

-- name: erase key
update {prefix}keys set result = null where key = $1 and result is not null;

-- name: vacuum
vacuum {prefix}inbox, {prefix}edits, {prefix}results, {prefix}keys;
