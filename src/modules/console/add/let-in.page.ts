/** The form of who may call a connection: only its owner, everybody in an organization, or people by their names. */
import { actions, button } from '../../../platform/pages/components.js';
import { fieldAs } from '../../../platform/pages/forms.js';
import { html, type Html } from '../../../platform/pages/html.js';

/** An organization whose members can be let in. */
export interface Organization {
  organizationId: string;
  organizationName: string;
}

/** The choice as it was sent; `who` is `own`, `people` or the id of an organization, and empty before one is made. */
export interface LetIn {
  who: string;
  /** Names of accounts, with commas or on lines of their own. */
  names: string;
}

/**
 * @param own label of the choice that lets nobody else in
 * @param save label of the button
 */
export function letInForm(
  { who, names }: LetIn,
  {
    token,
    own,
    organizations,
    faults,
    save,
  }: { token: Html; own: string; organizations: Organization[]; faults: string[]; save: string },
): Html {
  const choice = (value: string, label: string) =>
    html`<label class="choice"><input type="radio" name="who" required value="${value}"${value === who && html` checked`}> <span>${label}</span></label>`;
  const error = faults.length > 0 && html`${faults.map((fault) => html`${fault}<br>`)}`;
  return html`<form method="post" class="card">${token}<fieldset><legend>Who may call it</legend>
${choice('own', own)}
${organizations.map(({ organizationId, organizationName }) => choice(organizationId, `Everybody in ${organizationName}`))}
${choice('people', 'These people')}</fieldset>
${fieldAs({
  id: 'names',
  name: 'names',
  label: 'Names of their accounts, with commas or one a line',
  rows: 3,
  content: names,
  attributes: html`maxlength="20000"`,
  ...(error && { error, hasFocus: true }),
})}
${actions(button(save, { look: 'primary' }))}</form>`;
}

/** The names in the text of the field, each once. */
export function namesIn(text: string): string[] {
  return [...new Set(text.split(/[,\r\n]/).map((name) => name.trim()))].filter((name) => name !== '');
}
