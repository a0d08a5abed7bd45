import type { MigrationInterface, QueryRunner } from 'typeorm';

const COLUMNS = ['name', 'kind', 'is_operator', 'disabled_at'];

/** The trigger function of `accounts`. @param more SQL: what follows the values of a row that are shown, with `%` for the row */
const functionOfAccounts = (more = '') => {
  const values = (row: string) =>
    `jsonb_build_object('name', %.name, 'kind', %.kind, 'isOperator', %.is_operator, 'disabledAt', %.disabled_at)${more}`.replaceAll(
      '%',
      row,
    );
  return `CREATE OR REPLACE FUNCTION record_change_of_accounts() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      r accounts;
      was jsonb;
      is_now jsonb;
    BEGIN
      IF TG_OP = 'DELETE' THEN r := OLD; ELSE r := NEW; END IF;
      IF TG_OP <> 'INSERT' THEN was := ${values('OLD')}; END IF;
      IF TG_OP <> 'DELETE' THEN is_now := ${values('NEW')}; END IF;
      PERFORM record_change('account', TG_OP, r.id, r.id, r.name, was, is_now);
      RETURN NULL;
    END $$`;
};

const onUpdateOf = (columns: string[]) =>
  `CREATE TRIGGER accounts_record_changes AFTER UPDATE OF ${columns.join(', ')} ON accounts
    FOR EACH ROW WHEN (${columns.map((column) => `old.${column} IS DISTINCT FROM new.${column}`).join(' OR ')})
    EXECUTE FUNCTION record_change_of_accounts()`;

/** Records links of identities to accounts, and suspensions of the credentials of an account with their reasons. */
export class ChangesOfIdentities1795792000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE FUNCTION record_change_of_identities() RETURNS trigger LANGUAGE plpgsql AS $$
      DECLARE
        r identities;
        shown jsonb;
      BEGIN
        IF TG_OP = 'DELETE' THEN r := OLD; ELSE r := NEW; END IF;
        shown := jsonb_build_object('issuer', r.issuer, 'subject', r.subject);
        PERFORM record_change('identity', TG_OP, r.account_id, r.account_id, r.name,
          CASE TG_OP WHEN 'DELETE' THEN shown END, CASE TG_OP WHEN 'INSERT' THEN shown END);
        RETURN NULL;
      END $$`);
    await runner.query(`CREATE TRIGGER identities_record_rows AFTER INSERT OR DELETE ON identities
      FOR EACH ROW EXECUTE FUNCTION record_change_of_identities()`);
    await runner.query(
      functionOfAccounts(` || jsonb_strip_nulls(jsonb_build_object('suspendedFor', %.credentials_suspended_for))`),
    );
    await runner.query('DROP TRIGGER accounts_record_changes ON accounts');
    await runner.query(onUpdateOf([...COLUMNS, 'credentials_suspended_for']));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TRIGGER accounts_record_changes ON accounts');
    await runner.query(onUpdateOf(COLUMNS));
    await runner.query(functionOfAccounts());
    await runner.query('DROP FUNCTION record_change_of_identities CASCADE');
  }
}
