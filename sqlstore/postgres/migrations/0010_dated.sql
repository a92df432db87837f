-- Dated: consumers whose markers lie in a table of their own, of a partition for each day
-- by the time that ids carry. Ids from low to before high are kept there, those of the
-- days from low_day to before high_day.
create table {prefix}dated (
  number bigint generated always as identity primary key,
  consumer bytea not null unique,
  kind text not null,
  low_day date not null,
  high_day date not null,
  low bytea not null,
  high bytea not null
);

-- Where the ids of a day begin, as markers have them, in UTC.
create function {prefix}day_bound(kind text, day date) returns bytea language sql immutable as $function$
  select case kind
    when 'uuidv7' then pg_catalog.decode('01' || pg_catalog.lpad(pg_catalog.to_hex(ms), 12, '0'), 'hex')
    when 'ulid' then (
      select '\x00'::bytea || pg_catalog.decode(pg_catalog.string_agg(
        pg_catalog.substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((ms >> (5 * (9 - i))) & 31)::int + 1, 1), '' order by i), 'escape')
      from pg_catalog.generate_series(0, 9) i)
  end
  from (select (day - date '1970-01-01')::bigint * 86400000 as ms) since
$function$;
