# SPDX-License-Identifier: Apache-2.0
"""check.py CONDITION FILE...: does a condition hold for results in JSON?"""
import json
import sys

condition = sys.argv[1]
files = []
for name in sys.argv[2:]:
    with open(name, encoding="utf-8") as file:
        files.append(json.load(file))
names = {"files": files, "all": files[0], "results": files[0]["results"],
         "every": all, "some": any}
if not eval("(" + condition + ")", names):
    print("does not hold:", condition)
    for file in files:
        print(json.dumps(file)[:4000])
    sys.exit(1)
