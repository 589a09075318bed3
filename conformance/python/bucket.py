"""Creates and lists the bucket of the deployment's services, through boto3.

`create URL BUCKET` creates the bucket, and an account that may use S3 and nothing else. It prints the account's key.
`list URL BUCKET` prints the name and the digest of every object. It takes the key from the environment.
"""

import hashlib
import json
import os
import sys

import boto3
from botocore.config import Config

POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


def client(service, url, key_id, secret):
    return boto3.client(
        service,
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
        config=Config(s3={"addressing_style": "path"}, proxies={}),
    )


def create(url, bucket):
    # The server accepts these three requests without a signature, and checks the signature of all others.
    accounts = client("iam", url, "nobody", "nothing")
    accounts.create_user(UserName="tollgate")
    accounts.put_user_policy(UserName="tollgate", PolicyName="s3", PolicyDocument=json.dumps(POLICY))
    key = accounts.create_access_key(UserName="tollgate")["AccessKey"]
    client("s3", url, key["AccessKeyId"], key["SecretAccessKey"]).create_bucket(Bucket=bucket)
    return {"S3_ACCESS_KEY_ID": key["AccessKeyId"], "S3_SECRET_ACCESS_KEY": key["SecretAccessKey"]}


def contents(url, bucket):
    objects = client("s3", url, os.environ["S3_ACCESS_KEY_ID"], os.environ["S3_SECRET_ACCESS_KEY"])
    listed = objects.list_objects_v2(Bucket=bucket).get("Contents", [])
    read = lambda name: objects.get_object(Bucket=bucket, Key=name)["Body"].read()
    return {it["Key"]: hashlib.sha256(read(it["Key"])).hexdigest() for it in listed}


if __name__ == "__main__":
    command, url, bucket = sys.argv[1:]
    print(json.dumps({"create": create, "list": contents}[command](url, bucket)))
