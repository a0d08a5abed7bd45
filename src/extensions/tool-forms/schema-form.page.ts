import { details, fieldAs, html, jsonText, type Html } from '../../extension.js';
import type { Faults, Field } from './schema-form.js';

export interface Typed {
  form: URLSearchParams;
  faults: Faults;
}

export function inputsOf(root: Field, typed: Typed): Html {
  const asJson = { ...root, control: 'json' as const, label: 'The whole value as JSON', hint: '', isRequired: false };
  if (root.control === 'json') return inputOf(asJson, typed);
  const isOpen = typed.form.has(root.name) && typed.form.get(root.name) !== '';
  return html`${[...root.members.values()].map((field) => inputOf(field, typed))}
${typed.faults.has(root.name) && !isOpen && html`<p class="error" role="alert">${typed.faults.get(root.name)}</p>`}
${details('Enter JSON instead', inputOf(asJson, { ...typed, faults: isOpen ? typed.faults : new Map<string, string>() }), isOpen)}`;
}

function inputOf(field: Field, { form, faults }: Typed): Html {
  const { name, label, hint, control, input, isList, isRequired, members } = field;
  const fault = faults.get(name);
  const values = form.getAll(name);
  const attributes = isRequired ? html`aria-required="true"` : undefined;
  const shared = {
    id: encodeURIComponent(name),
    name,
    label: html`${label}${isRequired && ' (required)'}`,
    error: fault,
  };
  if (control === 'object') {
    const asJson = { ...field, control: 'json' as const, label: 'As JSON', hint: '', isRequired: false };
    return html`<fieldset class="field"><legend>${shared.label}</legend>
${hint !== '' && html`<p class="hint">${hint}</p>`}${fault !== undefined && html`<p class="error">${fault}</p>`}
${[...members.values()].map((member) => inputOf(member, { form, faults }))}
${values.length > 0 && inputOf(asJson, { form, faults: new Map() })}</fieldset>`;
  }
  if (control === 'choice') {
    const options = field.options.map(({ label: caption, value }) => [jsonText(value), caption] as const);
    return isList
      ? fieldAs({ ...shared, hint, options, checked: new Set(values) })
      : fieldAs({ ...shared, hint, attributes, options: [['', 'not set'], ...options], content: values[0] });
  }
  const isJson = control === 'json';
  const isTyped = input.type !== undefined && !isJson && !isList;
  const isTime = isTyped && input.type === 'datetime-local';
  const hints = [isJson && 'JSON', isList && !isJson && 'One in a line', isTime && 'In UTC', hint]
    .filter(Boolean)
    .join('. ');
  const rows = isTyped ? undefined : isJson ? 6 : isList ? 4 : 2;
  const { type, ...limits } = input;
  const own = Object.entries(limits).map(([attribute, value]) => html` ${attribute}="${value}"`);
  const plain = isTyped ? html`${attributes}${own} autocomplete="off"` : attributes;
  return fieldAs({ ...shared, hint: hints, attributes: plain, rows, content: values[0], ...(isTyped && { type }) });
}
