-- Expect refuses a statement that changed other than one row, with an error of
-- its own, so that a driver that sends statements together need not wait.
create function {prefix}expect(changed bigint) returns bigint language plpgsql as $function$
begin
  if changed <> 1 then
    raise exception using errcode = 'SM001', message = 'changed ' || changed || ' rows, not 1';
  end if;
  return changed;
end
$function$;
