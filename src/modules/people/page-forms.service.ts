import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { BodyBudget } from '../../platform/http/body/body-budget.js';
import { readBody } from '../../platform/http/body/request-body.js';
import { requireFormToken } from '../../platform/pages/form-token.js';
import { requireOwnHost } from '../../platform/pages/own-host.js';
import { PlainPageError, requireOwnPage } from '../../platform/pages/page.js';

/** Reads the forms of pages for people. */
@Injectable()
export class PageFormsService {
  constructor(
    private readonly env: Env,
    private readonly bodies: BodyBudget,
  ) {}

  /**
   * The values of a form that a page of ours made for this browser.
   *
   * @throws PageError, and as `readBody`
   */
  async read(request: Request, response: Response): Promise<URLSearchParams> {
    const refusal = () =>
      new PlainPageError(
        'forbidden',
        'foreign_form',
        'This form is no longer valid',
        'You signed in or out since it was opened, in another tab perhaps; or it was not opened in this browser, or the browser has ' +
          'lost its cookies. Nothing was changed. Open the page again, and allow cookies for it.',
      );
    requireOwnHost(request, this.env);
    requireOwnPage(request, this.env, refusal);
    this.bodies.admitStranger(request, response);
    const form = new URLSearchParams(await readBody(request, Infinity));
    requireFormToken(this.env, request, form, refusal);
    return form;
  }
}
