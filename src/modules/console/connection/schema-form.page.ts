/** The HTML of a form that was made of a JSON Schema (`schema-form.ts`). */
import { details } from '../../../platform/pages/components.js';
import { html, type Html } from '../../../platform/pages/html.js';
import { jsonText, type Faults, type Field } from './schema-form.js';

/** Values of the inputs, and the faults beside them. */
export interface Typed {
  form: URLSearchParams;
  faults: Faults;
}

/** The inputs of the members of a value, and one for the whole value as JSON. */
export function inputsOf(root: Field, typed: Typed): Html {
  const asJson = { ...root, control: 'json' as const, label: 'The whole value as JSON', hint: '', isRequired: false };
  if (root.control === 'json') return inputOf(asJson, typed);
  const isOpen = typed.form.has(root.name) && typed.form.get(root.name) !== '';
  return html`${[...root.members.values()].map((field) => inputOf(field, typed))}
${typed.faults.has(root.name) && !isOpen && html`<p class="error" role="alert">${typed.faults.get(root.name)}</p>`}
${details('Enter JSON instead', inputOf(asJson, { ...typed, faults: isOpen ? typed.faults : new Map<string, string>() }), isOpen)}`;
}

function inputOf(field: Field, { form, faults }: Typed): Html {
  const { name, label, hint, control, isList, isRequired, members } = field;
  const fault = faults.get(name);
  const values = form.getAll(name);
  const about = html`${hint !== '' && html`<span class="hint">${hint}</span>`}${fault !== undefined && html`<span class="error">${fault}</span>`}`;
  const head = html`${label}${isRequired && ' (required)'}`;
  if (control === 'object') {
    const asJson = { ...field, control: 'json' as const, label: 'As JSON', hint: '', isRequired: false };
    return html`<fieldset class="field"><legend>${head}</legend>${about}
${[...members.values()].map((member) => inputOf(member, { form, faults }))}
${values.length > 0 && inputOf(asJson, { form, faults: new Map() })}</fieldset>`;
  }
  const attributes = html`name="${name}"${isRequired && html` aria-required="true"`}${fault !== undefined && html` aria-invalid="true"`}`;
  const [text = ''] = values;
  if (control === 'choice') {
    const options = field.options.map(({ label: caption, value }) => {
      const sent = jsonText(value);
      return html`<option value="${sent}"${values.includes(sent) && html` selected`}>${caption}</option>`;
    });
    return html`<div class="field"><label>${head}<select ${attributes}${isList && html` multiple`}>${!isList && html`<option value="">not set</option>`}${options}</select>${about}</label></div>`;
  }
  const note = control === 'json' ? 'JSON' : isList ? 'one in a line' : null;
  const input =
    isList || control === 'text' || control === 'json'
      ? html`<textarea ${attributes} rows="${control === 'json' ? 6 : isList ? 4 : 2}" spellcheck="false">
${text}</textarea>`
      : html`<input ${attributes} inputmode="decimal" autocomplete="off" value="${text}">`;
  return html`<div class="field"><label>${head}${note && html` <span class="hint">${note}</span>`}${input}${about}</label></div>`;
}
