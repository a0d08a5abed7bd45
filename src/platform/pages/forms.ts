/**
 * A rejected form is shown again with the sent values, except passwords, and with the reason: next to its field, which
 * gets the focus; otherwise at the head of the form; and at the head of the page if the form is no longer there.
 */
import { DomainError, statusOf } from '../errors/domain-error.js';
import type { FramedPage, PlainPage, Redirect } from './frame.js';
import { actions, notice } from './components.js';
import { html, type Html, type HtmlValue } from './html.js';
import { PageError } from './page.js';

export interface RejectedForm {
  /** The name of the form: its address, relative to the page. */
  name: string;
  /** The row of the form; '' without one. */
  id: string;
  /** The reason, without a final period. */
  text: string;
  /** The field that the reason concerns; by default the one whose name starts the reason. */
  field?: string;
  /** The values that were sent. */
  values: URLSearchParams;
  /** True once a form has shown the reason. */
  isShown?: boolean;
}

export interface FormsView {
  token: Html;
  /** The address of the page, relative to the one that the browser shows. */
  address: string;
  rejected?: RejectedForm;
}

/** A field of a form: a line of text, unless one of `options`, `rows` and `type` says otherwise. */
export interface Field {
  name: string;
  label: HtmlValue;
  hint?: string;
  /** The name of the value in errors, if it differs. */
  member?: string;
  /** The initial value. */
  value?: string;
  /** A `checkbox` is one box for each of `options`. */
  type?: 'checkbox' | 'date' | 'file' | 'number' | 'password';
  /** Lines of a text area. */
  rows?: number;
  /** Values to choose from, with their labels. */
  options?: readonly (readonly [value: string, label: string])[];
  /** Further attributes of the input. */
  attributes?: Html;
}

/**
 * Returns the response to a form: the result of `work`, or the page of the form with the reason for its rejection.
 *
 * @param name the name of the form
 * @param show creates the page
 * @throws PageError of `work`, which has its own page
 * @stability preview
 */
export async function respondToForm<Shown extends FramedPage | PlainPage>(
  name: string,
  values: URLSearchParams,
  work: () => Promise<Shown | Redirect>,
  show: (rejected: RejectedForm) => Promise<Shown>,
): Promise<Shown | Redirect> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof DomainError) || error instanceof PageError) throw error;
    const page = await show(rejectionOf(name, values, error));
    page.status = statusOf[error.kind];
    return page;
  }
}

export function rejectionOf(name: string, values: URLSearchParams, { message, field }: DomainError): RejectedForm {
  return { name, id: values.get('id') ?? '', text: message.replace(/\.$/, ''), field, values };
}

/** Returns the body of a page, with the reason for a rejection at its top if none of its forms shows it. */
export function withReason({ rejected }: Pick<FormsView, 'rejected'>, body: Html): Html {
  return html`${rejected && !rejected.isShown && notice(html`Nothing was changed: ${rejected.text}.`, 'bad')}${body}`;
}

/**
 * Renders a form with its fields, and other content between them.
 *
 * @param name of the form
 * @param end content after the fields: the button
 * @param id the row of the form
 * @param action the address of the form, if it is not its name; null for that of the page, with its query
 * @param hasFiles the form is one with `parts`
 * @stability preview
 */
export function formOf(
  view: FormsView,
  name: string,
  fields: readonly (Field | Html | false)[],
  end: Html,
  {
    id = '',
    action = `${view.address}/${name}`,
    hasFiles,
  }: { id?: string; action?: string | null; hasFiles?: boolean } = {},
): Html {
  const rejected = view.rejected?.name === name && view.rejected.id === id ? view.rejected : undefined;
  const faulty = rejected && fieldAt(rejected, fields.filter(isField));
  if (rejected) rejected.isShown = true;
  const prefix = [action?.replace(/^[./]+/, ''), id].filter(Boolean).join('-');
  return html`<form method="post"${action !== null && html` action="${action}"`}${hasFiles && html` enctype="multipart/form-data"`}>${view.token}${id !== '' && html`<input type="hidden" name="id" value="${id}">`}
${rejected && !faulty && html`<p class="error" role="alert">${rejected.text}.</p>`}
${fields.map((field) => (isField(field) ? fieldOf(field, `${prefix}-${field.name}`, rejected, field === faulty) : field))}
${actions(end)}</form>`;
}

function isField(field: Field | Html | false): field is Field {
  return field !== false && 'name' in field;
}

/** Returns the only field for text or a choice, if the reason names none. */
function fieldAt({ field, text }: RejectedForm, fields: Field[]): Field | undefined {
  const fieldName = field ?? /^\w+/.exec(text)?.[0];
  const inputs = fields.filter(({ type }) => type !== 'checkbox');
  const textFields = inputs.filter(({ options }) => !options);
  const [only] = [inputs, textFields].find(({ length }) => length === 1) ?? [];
  return fields.find(({ name }) => name === fieldName) ?? fields.find(({ member }) => member === fieldName) ?? only;
}

function fieldOf(field: Field, id: string, rejected: RejectedForm | undefined, isFaulty: boolean): Html {
  const { name, label, member = name, type, options, value = '' } = field;
  const typed = rejected && type !== 'password' ? rejected.values.getAll(name) : [];
  const content = typed[0] ?? (type === 'password' ? '' : value);
  const error = rejected?.text.replace(/^\w+/, (word) =>
    [name, member].includes(word) && typeof label === 'string' ? label : word,
  );
  const checked = type === 'checkbox' ? new Set(typed) : undefined;
  return fieldAs({
    ...field,
    options,
    id,
    content,
    checked,
    ...(isFaulty && { error: html`${error}.`, hasFocus: true }),
  });
}

export interface ShownField extends Pick<Field, 'name' | 'label' | 'rows' | 'options' | 'attributes'> {
  id: string;
  type?: string;
  hint?: HtmlValue;
  error?: HtmlValue;
  hasFocus?: boolean;
  /** The value, or the chosen option. */
  content?: string;
  /** Makes a checkbox of each option; those in the set are checked. */
  checked?: ReadonlySet<string>;
}

/** Renders the label, the control, the reason for a rejection and the hint of a field. */
export function fieldAs({
  id,
  name,
  label,
  hint,
  error,
  hasFocus,
  content = '',
  checked,
  ...control
}: ShownField): Html {
  const { type, rows, options, attributes } = control;
  const about = [error && `${id}-fault`, hint && `${id}-hint`].filter(Boolean).join(' ');
  const marks = html`${about !== '' && html` aria-describedby="${about}"`}${error && html` aria-invalid="true"`}${hasFocus && html` autofocus`}`;
  const notes = html`${error && html`<p id="${id}-fault" class="error" role="alert">${error}</p>`}${hint && html`<p id="${id}-hint" class="hint">${hint}</p>`}`;
  if (checked) {
    const boxes = options?.map(
      ([value, caption], i) =>
        html`<label class="choice"><input type="checkbox" name="${name}" value="${value}"${checked.has(value) && html` checked`}${i === 0 && marks}><span>${caption}</span></label>\n`,
    );
    return html`<fieldset class="field"><legend>${label}</legend>${boxes}${notes}</fieldset>\n`;
  }
  const shared = html`id="${id}"${marks} name="${name}"${type && html` type="${type}"`}${attributes && html` ${attributes}`}`;
  const input = options
    ? html`<select ${shared}>${options.map(([value, caption]) => html`<option value="${value}"${value === content && html` selected`}>${caption}</option>`)}</select>`
    : rows
      ? html`<textarea ${shared} rows="${rows}" spellcheck="false">\n${content}</textarea>`
      : html`<input ${shared} value="${content}">`;
  return html`<div class="field"><label for="${id}">${label}</label>
${input}
${notes}</div>\n`;
}
